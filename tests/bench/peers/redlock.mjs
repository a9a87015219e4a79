// node-redlock, as its manual has it: a connection to each master, its own settings but for the number
// of tries, since here everybody waits until it is his turn.
import { Redis } from 'ioredis';
import { default as Redlock } from 'redlock';

const TTL_MS = 2000;

export async function open({ redisPorts }) {
  const masters = redisPorts.map((port) => new Redis(port, '127.0.0.1'));
  const redlock = new Redlock(masters, { retryCount: -1 });
  redlock.on('error', () => {}); // also of each try that was refused
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
