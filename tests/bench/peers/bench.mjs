// Run one lock client for a while, as fast as it gets replies, for tests/bench/peer.c:
//
//     node bench.mjs PEER apart|together|in-turns IN_FLIGHT MS HOLD_MS REDIS_PORTS DAEMON_PORT ETCD_PORT
//
// PEER is the name of a module beside this one, which exports
//
//     open({ redisPorts, daemonPort, etcdPort, clients, together }) -> { use, close }
//     use(resource, client, work): acquire the lock, await work(), release it; client: 0 to clients-1
//
// apart: each client has its own resource. together: all clients want one resource, and request it again
// at once. in-turns: a client requests the resource again once another client holds it. Otherwise, in a
// library without a queue, the last holder would take the lock again, and there would be no hand-over.
// The output has a line for each figure, a name and a number, which peer.c reads.

const WARM_UP_MS = 500; // until the JIT compiler has optimised the code

const [peer, how, inFlight, forMs, holdMs, redisPorts, daemonPort, etcdPort] = process.argv.slice(2);
const clients = Number(inFlight);
const together = how !== 'apart';
const inTurns = how === 'in-turns';
const now = () => Number(process.hrtime.bigint()); // in ns; exact for a hundred days

const acquires = [];
const handovers = [];
const turns = new Array(clients).fill(0);
const askedAt = new Array(clients).fill(0); // 0: not waiting
const counts = { pairs: 0, all_pairs: 0, failed: 0 };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let measuring = false;
let ending = false;
let releasedAt = 0; // with one resource: time of the last release
let releasedBy = -1; // with one resource: client of the last release; -1: none yet
let stillWaiting = []; // at the end of the measurement: how long each waiting client has waited, in ns
let waiting = []; // in-turns: clients that wait until another one gets the lock

function wake() {
  for (const resolve of waiting) resolve();
  waiting = [];
}

function granted(client) {
  const at = now();
  const since = askedAt[client];
  askedAt[client] = 0;
  if (measuring) {
    acquires.push(at - since);
    turns[client]++;
    // A client that takes the lock again has not handed it over.
    if (together && releasedBy !== -1 && releasedBy !== client) handovers.push(at - releasedAt);
  }
  wake();
}

async function play(locks, client) {
  const resource = together ? 'peers' : `peers-${client}`;
  while (!ending) {
    askedAt[client] = now();
    let another;
    try {
      await locks.use(resource, client, async () => {
        granted(client);
        if (holdMs > 0) await pause(Number(holdMs));
        releasedAt = now();
        releasedBy = client;
        if (inTurns) another = new Promise((resolve) => waiting.push(resolve));
      });
      counts.all_pairs++;
      if (measuring) counts.pairs++;
      if (!ending) await another;
    } catch (error) {
      if (counts.failed++ === 0) console.error(error);
    }
  }
}

async function measure() {
  await pause(WARM_UP_MS);
  const began = now();
  const before = process.cpuUsage();
  measuring = true;
  await pause(Number(forMs));
  measuring = false;
  ending = true;
  wake();
  const used = process.cpuUsage(before);
  const at = now();
  stillWaiting = askedAt.filter((since) => since > 0).map((since) => at - since);
  return { seconds: (at - began) / 1e9, cpu_us: used.user + used.system };
}

function jain() {
  const sum = turns.reduce((all, one) => all + one, 0);
  const squares = turns.reduce((all, one) => all + one * one, 0);
  return squares > 0 ? (sum * sum) / (clients * squares) : 0;
}

const { open } = await import(`./${peer}.mjs`);
const locks = await open({
  redisPorts: redisPorts.split(',').map(Number),
  daemonPort: Number(daemonPort),
  etcdPort: Number(etcdPort),
  clients,
  together,
});
const players = Array.from({ length: clients }, (_, client) => play(locks, client));
const spent = await measure();
await Promise.all(players);
await locks.close();

const lines = Object.entries({ ...spent, ...counts, jain: jain() }).map(([name, n]) => `${name} ${n}`);
for (const ns of acquires) lines.push(`acquire ${ns}`);
for (const ns of stillWaiting) lines.push(`waiting ${ns}`);
for (const ns of handovers) lines.push(`handover ${ns}`);
process.stdout.write(lines.join('\n') + '\n');
