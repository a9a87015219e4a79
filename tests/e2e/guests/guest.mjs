// Takes a lock with the Node client of docs/clients.md and works under it; see test_doc_clients.c.
//     guest.mjs DIR PORT RESOURCE TTL_MS WAIT_MS WORK
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const [folder, port, resource, ttlMs, waitMs, work] = process.argv.slice(2);
const { withLock, NotLocked } = await import(`${folder}/client.mjs`);

const print = (text) => fs.writeSync(1, `${text}\n`);

async function untilFinish({ fence }) {
  print(`working ${fence}`);
  while (!fs.existsSync(`${folder}/finish`)) await sleep(5);
}

async function fail() {
  throw new Error('the work failed');
}

async function alone({ fence }) {
  const inside = fs.openSync(`${folder}/inside`, 'wx'); // fails if another client is inside
  fs.appendFileSync(`${folder}/fences`, `${fence}\n`);
  await sleep(2); // the work
  fs.closeSync(inside);
  fs.unlinkSync(`${folder}/inside`);
}

const works = { 'until-finish': [untilFinish, 1], fail: [fail, 1], alone: [alone, 25] };
const [run, times] = works[work];
const address = { host: '127.0.0.1', port: Number(port) };
try {
  for (let i = 0; i < times; i++)
    await withLock(address, resource, { ttlMs: Number(ttlMs), waitMs: Number(waitMs) }, run);
  print('done');
} catch (error) {
  print(`${error instanceof NotLocked ? 'not locked' : 'error'}: ${error.message}`);
}
