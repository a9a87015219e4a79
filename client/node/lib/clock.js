// A clock in milliseconds that counts suspend. On Linux, performance.now() stands still while the
// machine sleeps, but the TTLs on the masters do not. os.uptime() keeps running, but it reads a
// file and has steps of 10 ms. So the time of day is the hint: whenever it has moved against
// performance.now(), the machine may have slept, and os.uptime() says for how long. On macOS and
// Windows performance.now() itself counts suspend, and a step of the time of day counts as sleep,
// which only makes deadlines earlier.
import os from 'node:os';

const JUMP_MS = 10; // far above the resolution of Date.now(), far below any suspend
const UPTIME_STEP_MS = 10;

/**
 * Returns a function that reads the clock. All three arguments return milliseconds. Without
 * `uptime`, every step of the time of day ahead counts as suspend.
 */
export function createClock(monotonic, wall, uptime) {
  let apart = wall() - monotonic();
  let slept = 0;
  const neverSlept = uptime ? uptime() - monotonic() : 0;

  function onJump(jump) {
    if (!uptime) {
      slept += Math.max(0, jump);
      return;
    }
    const measured = uptime() - monotonic() - neverSlept;
    // Both readings of the uptime can be one step too early.
    if (measured > 2 * UPTIME_STEP_MS) slept = Math.max(slept, measured + UPTIME_STEP_MS);
  }

  return function now() {
    const at = monotonic();
    const offset = wall() - at;
    if (Math.abs(offset - apart) > JUMP_MS) {
      onJump(offset - apart);
      apart = offset;
    }
    return at + slept;
  };
}

export const now = createClock(
  performance.now.bind(performance),
  Date.now,
  process.platform === 'linux' ? () => os.uptime() * 1000 : undefined,
);
