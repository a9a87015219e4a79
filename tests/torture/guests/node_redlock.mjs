// A guest of the torture with node-redlock and ioredis, on the same keys (tests/torture/guests.h).
import { createRequire } from 'node:module';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { below, ended, free, report, workers } from './guest_lines.mjs';

const require = createRequire(path.resolve(process.env.GUEST_PACKAGES, 'index.js'));
const { Redis } = require('ioredis');
const { default: Redlock } = require('redlock');

const KEY_PREFIX = 'redlock:'; // redlockd's default

async function visit(redlock) {
  const name = `r#${below(6)}`;
  const claim = { ttl: 200 + below(801), until: 0 };
  let lock = await redlock.acquire([KEY_PREFIX + name], claim.ttl);
  const remaining = () => Math.max(0, lock.expiration - Date.now());
  report(claim, lock, remaining, name);
  const end = performance.now() + below(below(15) === 0 ? 1500 : 60);
  while (remaining() > 0 && performance.now() < end) {
    await sleep(10);
    if (below(10) === 0) lock = await lock.extend(claim.ttl);
    report(claim, lock, remaining, name);
  }
  if (below(25) === 0) return; // it expires
  free(lock, name);
  await lock.release();
}

await workers(3, async () => {
  const masters = process.env.GUEST_MASTERS.split(' ').map((address) => {
    const [host, port] = address.split(':');
    const master = new Redis({ host, port: Number(port), retryStrategy: () => 50 });
    master.on('error', () => {});
    return master;
  });
  const redlock = new Redlock(masters, { retryCount: 20, retryDelay: 50, retryJitter: 30 });
  redlock.on('error', () => {});
  while (!ended())
    await visit(redlock).catch(async (error) => {
      if (error instanceof TypeError || error instanceof ReferenceError) throw error;
      await sleep(20);
    });
  for (const master of masters) master.disconnect();
});
