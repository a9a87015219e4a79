// The scenario of tests/clients/test_redis_clients.py with ioredis.
import assert from 'node:assert';
import { once } from 'node:events';
import readline from 'node:readline';
import Redis from 'ioredis';

const { HOST, PORT, SECRET } = process.env;
const ok = (step) => console.log(`ok ${step}`);
const input = readline.createInterface({ input: process.stdin });

function connect(password = SECRET, more = {}) {
  const client = new Redis({
    host: HOST,
    port: Number(PORT),
    username: 'app',
    password,
    enableReadyCheck: false, // INFO needs the verb STATS
    // A LOCK that is sent twice is two LOCKs, so fail instead.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    ...more,
  });
  client.on('error', () => {}); // the commands fail, too
  return client;
}

const a = connect();
const b = connect();

const [outcome, token, validityMs, elapsedMs, fence] = await a.call('LOCK', 'x', '30s');
assert.deepEqual([outcome, token.length, fence], ['OK', 40, null]);
assert(validityMs + elapsedMs > 0 && validityMs + elapsedMs <= 30000);
ok('lock');

const [held, hintMs] = await b.call('LOCK', 'x', '30s');
assert(held === 'HELD' && hintMs > 0 && hintMs <= 30000);
ok('exclusion');

assert.equal((await a.call('EXTEND', 'x', token, '40s'))[1], token);
ok('extend');

assert.equal(await a.call('UNLOCK', 'x', token), 'OK');
assert.equal(await a.call('UNLOCK', 'x', token), 'GONE');
ok('unlock');

assert.equal((await a.call('LOCK', 'x', '2s'))[0], 'OK');
assert.equal((await b.call('LOCK', 'x', '30s', 'WAIT', '30s'))[0], 'OK');
ok('wait');

const first = await a.call('LOCK', 'f', '30s', 'FENCE');
assert.equal(await a.call('UNLOCK', 'f', first[1]), 'OK');
assert((await a.call('LOCK', 'f', '30s', 'FENCE'))[4] > first[4]);
ok('fence');

await assert.rejects(a.call('LOCK', 'x', '1ms'), /ERR ttl-range TTL 1ms must be between/);
ok('error');

const stranger = connect('wrong', { retryStrategy: null });
const [refused] = await once(stranger, 'error');
assert.match(refused.message, /WRONGPASS wrong secret/);
ok('secret');

// ioredis speaks RESP3 but drops the push message LOST, so only EXTEND shows the loss.
const [, holdToken] = await a.call('LOCK', 'h', '3s', 'HOLD');
assert.equal(await b.call('UNLOCK', 'h', holdToken), 'OK');
assert.equal(await a.call('EXTEND', 'h', holdToken, '3s'), 'GONE');
// An application that needs LOST learns of its mistake if it asks for RESP2.
const two = connect(SECRET, { protocol: 2 });
await assert.rejects(two.call('LOCK', 'h', '3s', 'HOLD'), /send HELLO 3 first/);
ok('hold');

const grants = await Promise.all(
  Array.from({ length: 64 }, (_, i) => a.call('LOCK', `many:${i}`, '30s')),
);
assert.equal(new Set(grants.map((grant) => grant[1])).size, 64);
ok('many');

const nodes = await a.call('NODES');
assert.equal(nodes.length, 3);
for (const node of nodes) assert.equal(node[node.indexOf('vote') + 1], 'yes');
ok('listing');

await assert.rejects(a.call('BREAK', 'x'), /NOPERM/);
ok('denied');

const [, kept] = await a.call('LOCK', 'kept', '50s');
const ready = new Promise((resolve) => a.once('ready', resolve));
console.log('restart');
const [line] = await once(input, 'line');
assert.equal(line, 'restarted');
await ready;
assert.equal((await a.call('STATUS', 'kept'))[0], 'HELD');
assert.equal(await a.call('UNLOCK', 'kept', kept), 'OK');
ok('reconnect');

for (const client of [a, b, two, stranger]) client.disconnect();
input.close();
