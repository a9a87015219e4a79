// What the guests in Node have in common: the lines of tests/torture/guests.h, and random numbers.
import fs from 'node:fs';

const { GUEST_NAME, GUEST_FINISH, GUEST_OVERCLAIM_MS, GUEST_SEED } = process.env;
const GROWN_NS = 5e6;

let state = Number(GUEST_SEED) >>> 0;

/** A random integer from 0 to count - 1 (mulberry32). */
export function below(count) {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * count);
}

const write = (text) => fs.writeSync(1, `${GUEST_NAME} ${text}\n`);

/** Reports how long the lock is held: at first, and when that has grown. */
export function report(claim, lock, remaining, name = lock.resources[0]) {
  const now = Number(process.hrtime.bigint());
  const until = now + Math.floor((remaining() + Number(GUEST_OVERCLAIM_MS)) * 1e6);
  if (claim.until !== 0 && until < claim.until + GROWN_NS) return;
  const verb = claim.until === 0 ? 'held' : 'more';
  write(`${verb} ${name} ${lock.value} ${lock.fence || 0} ${claim.ttl} ${now} ${until}`);
  claim.until = until;
}

export const free = (lock, name = lock.resources[0]) => write(`free ${name} ${lock.value}`);

export const ended = () => fs.existsSync(GUEST_FINISH);

export const workers = (count, work) =>
  Promise.all(Array.from({ length: count }, (_, number) => work(number)));
