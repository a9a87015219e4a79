// node-redlock as in its manual: a connection to each master, and the default settings. Only the number of
// retries is unlimited, since each client here waits until it gets the lock.
import { Redis } from 'ioredis';
import { default as Redlock } from 'redlock';

const TTL_MS = 2000;

export async function open({ redisPorts }) {
  const masters = redisPorts.map((port) => new Redis(port, '127.0.0.1'));
  const redlock = new Redlock(masters, { retryCount: -1 });
  redlock.on('error', () => {}); // each refused attempt is an error event
  return {
    async use(resource, client, work) {
      const lock = await redlock.acquire([resource], TTL_MS);
      try {
        await work();
      } finally {
        await lock.release();
      }
    },
    close: () => Promise.all(masters.map((master) => master.quit())),
  };
}
