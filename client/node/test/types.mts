// What TypeScript has to accept. The compiler comes from npm, so only `make check-clients` runs it:
// tests/clients/types.sh.
import Redlock, {
  ExecutionError,
  Lock,
  LostError,
  ResourceLockedError,
  type ExecutionResult,
  type ExecutionStats,
  type Settings,
} from '../index.js';

const redlock = new Redlock(['tcp://127.0.0.1:7335', 'unix:/run/redlockd.sock'], {
  driftFactor: 0.01,
  retryCount: 3,
  tls: { ca: 'text' },
  secret: 'text',
});
redlock.on('error', (error) => {
  if (error instanceof ResourceLockedError) return;
  console.error(error.message);
});
redlock.on('warning', ({ resource, reason }) => console.warn(resource, reason));

let lock: Lock = await redlock.acquire(['a'], 1000, { retryCount: 0, hold: true, slots: 3 });
lock = await lock.extend(5000);
const expiration: number = lock.expiration;
const stats: ExecutionStats = await lock.attempts[0];
try {
  await lock.release();
  await redlock.release(lock);
} catch (error) {
  if (error instanceof LostError) console.log(error.reason);
  if (error instanceof ExecutionError) console.log(error.outcome, error.attempts.length);
}

const number: number = await redlock.using(['a'], 5000, async (signal) => {
  if (signal.aborted) throw signal.error;
  return 42;
});
const text: string = await redlock.using(['a'], 5000, { fence: true }, async (signal, held) => {
  signal.throwIfAborted();
  return `${held.fence} ${held.remaining}`;
});

// As with redlock 5.
const complete: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
};
const retries: number = new Redlock('unix:/run/redlockd.sock', complete).settings.retryCount;
lock = await redlock.extend(lock, 5000, { retryCount: 0 });
const result: ExecutionResult = await redlock.release(lock, complete);

const moved = new Lock(redlock, lock.resources, lock.value, [], expiration);
await redlock.extend(moved, 5000);
await redlock.quit();
void [stats, number, text, retries, result];
