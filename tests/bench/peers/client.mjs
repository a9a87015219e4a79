// The package client/node, used like node-redlock in redlock.mjs: acquire() and release(). It waits
// in line where node-redlock retries.
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const TTL_MS = 2000;

const { default: Redlock } = await import(pathToFileURL(path.resolve('client/node/index.js')));

export async function open({ daemonPort, together }) {
  const redlock = new Redlock(`tcp://127.0.0.1:${daemonPort}`, { retryCount: together ? -1 : 0 });
  return {
    async use(resource, client, work) {
      const lock = await redlock.acquire([resource], TTL_MS);
      try {
        await work();
      } finally {
        await lock.release();
      }
    },
    close: () => redlock.quit(),
  };
}
