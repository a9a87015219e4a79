// A guest of the torture with the Node package (tests/torture/guests.h).
import { setTimeout as sleep } from 'node:timers/promises';

import Redlock from '../../../client/node/index.js';
import { below, ended, free, report, workers } from './guest_lines.mjs';

const daemons = process.env.GUEST_DAEMONS.split(' ');

async function work(way, lock, claim) {
  const remaining = () => lock.remaining;
  report(claim, lock, remaining);
  const end = performance.now() + below(below(15) === 0 ? 1500 : 60);
  while (!lock.signal.aborted && performance.now() < end) {
    await sleep(10);
    if (way === 'extend' && below(10) === 0) await lock.extend(claim.ttl);
    report(claim, lock, remaining);
  }
}

async function visit(redlock) {
  const way = ['plain', 'extend', 'using', 'hold'][below(4)];
  const slots = below(3) === 0;
  const resource = slots ? 'r' : `r#${below(6)}`;
  const claim = { ttl: 600 + below(401), until: 0 };
  const settings = {
    wait: below(3) === 0 ? 0 : below(2000),
    fence: below(2) === 0,
    hold: way === 'hold',
    ...(slots && { slots: 1 + below(5) }),
    ...(below(4) === 0 && { signal: AbortSignal.timeout(1 + below(1000)) }),
  };
  if (way === 'using') {
    await redlock.using([resource], claim.ttl, settings, async (signal, lock) => {
      await work(way, lock, claim);
      free(lock);
    });
    return;
  }
  const lock = await redlock.acquire([resource], claim.ttl, settings);
  try {
    await work(way, lock, claim);
  } finally {
    // Sometimes the lock is forgotten, and expires.
    if (way === 'hold' || below(25) !== 0) {
      free(lock);
      await lock.release();
    }
  }
}

await workers(4, async (number) => {
  const urls = [...daemons.slice(number), ...daemons.slice(0, number)];
  const redlock = new Redlock(urls, { timeout: 1000, name: process.env.GUEST_NAME });
  redlock.on('error', () => {});
  while (!ended())
    await visit(redlock).catch(async (error) => {
      if (error instanceof TypeError || error instanceof ReferenceError) throw error;
      await sleep(20);
    });
  await redlock.quit();
});
