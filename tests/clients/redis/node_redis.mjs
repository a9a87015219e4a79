// The scenario of tests/clients/test_redis_clients.py with node-redis.
import assert from 'node:assert';
import { once } from 'node:events';
import readline from 'node:readline';
import { createClient } from 'redis';

const { HOST, PORT, SECRET } = process.env;
const ok = (step) => console.log(`ok ${step}`);
const input = readline.createInterface({ input: process.stdin });

// node-redis sends no command twice once it has been written. Without an offline queue, a command
// fails while there is no connection.
function create(password = SECRET, more = {}) {
  const client = createClient({
    socket: { host: HOST, port: Number(PORT) },
    username: 'app',
    password,
    disableOfflineQueue: true,
    ...more,
  });
  client.on('error', () => {}); // the commands fail, too
  return client;
}

async function connect(more = {}) {
  const client = create(SECRET, more);
  await client.connect();
  return client;
}

const a = await connect();
const b = await connect();
const ask = (client, ...words) => client.sendCommand(words);

const [outcome, token, validityMs, elapsedMs, fence] = await ask(a, 'LOCK', 'x', '30s');
assert.deepEqual([outcome, token.length, fence], ['OK', 40, null]);
assert(validityMs + elapsedMs > 0 && validityMs + elapsedMs <= 30000);
ok('lock');

const [held, hintMs] = await ask(b, 'LOCK', 'x', '30s');
assert(held === 'HELD' && hintMs > 0 && hintMs <= 30000);
ok('exclusion');

assert.equal((await ask(a, 'EXTEND', 'x', token, '40s'))[1], token);
ok('extend');

assert.equal(await ask(a, 'UNLOCK', 'x', token), 'OK');
assert.equal(await ask(a, 'UNLOCK', 'x', token), 'GONE');
ok('unlock');

assert.equal((await ask(a, 'LOCK', 'x', '2s'))[0], 'OK');
assert.equal((await ask(b, 'LOCK', 'x', '30s', 'WAIT', '30s'))[0], 'OK');
ok('wait');

const first = await ask(a, 'LOCK', 'f', '30s', 'FENCE');
assert.equal(await ask(a, 'UNLOCK', 'f', first[1]), 'OK');
assert((await ask(a, 'LOCK', 'f', '30s', 'FENCE'))[4] > first[4]);
ok('fence');

await assert.rejects(ask(a, 'LOCK', 'x', '1ms'), /ERR ttl-range TTL 1ms must be between/);
ok('error');

const stranger = create('wrong', {
  socket: { host: HOST, port: Number(PORT), reconnectStrategy: false },
});
await assert.rejects(stranger.connect(), /WRONGPASS wrong secret/);
ok('secret');

// node-redis speaks RESP3 but drops the push message LOST, so only EXTEND shows the loss.
const [, holdToken] = await ask(a, 'LOCK', 'h', '3s', 'HOLD');
assert.equal(await ask(b, 'UNLOCK', 'h', holdToken), 'OK');
assert.equal(await ask(a, 'EXTEND', 'h', holdToken, '3s'), 'GONE');
const two = await connect({ RESP: 2 });
await assert.rejects(ask(two, 'LOCK', 'h', '3s', 'HOLD'), /send HELLO 3 first/);
ok('hold');

const grants = await Promise.all(
  Array.from({ length: 64 }, (_, i) => ask(a, 'LOCK', `many:${i}`, '30s')),
);
assert.equal(new Set(grants.map((grant) => grant[1])).size, 64);
ok('many');

const nodes = await ask(a, 'NODES');
assert.deepEqual(nodes.map((node) => node.vote), ['yes', 'yes', 'yes']);
assert.equal(nodes[0].reason, null);
ok('listing');

await assert.rejects(ask(a, 'BREAK', 'x'), /NOPERM/);
ok('denied');

const [, kept] = await ask(a, 'LOCK', 'kept', '50s');
// node-redis 6.3.1: a client that is destroyed while it connects keeps its connection, so that this
// program would not end.
const clients = [a, b, two];
const ready = clients.map((client) => new Promise((resolve) => client.once('ready', resolve)));
console.log('restart');
const [line] = await once(input, 'line');
assert.equal(line, 'restarted');
await Promise.all(ready);
assert.equal((await ask(a, 'STATUS', 'kept'))[0], 'HELD');
assert.equal(await ask(a, 'UNLOCK', 'kept', kept), 'OK');
ok('reconnect');

for (const client of clients) client.destroy();
input.close();
