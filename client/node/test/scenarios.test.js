// The scenarios of client/scenarios.md, under their names.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import tls from 'node:tls';
import { after, afterEach, before, test as runTest } from 'node:test';
import { fileURLToPath } from 'node:url';

import Redlock, {
  ExecutionError,
  Lock,
  LostError,
  NoQuorumError,
  ResourceLockedError,
  UnavailableError,
} from '../index.js';
import { aborted, Cluster, DEADLINE_MS, ScriptedDaemon, until } from './cluster.js';

const TOKEN = 'a'.repeat(40);
const FOREVER = { retryCount: -1 };

const cluster = new Cluster();
before(() => cluster.start({ daemons: 2, tls: true }), { timeout: DEADLINE_MS });
afterEach(() => cluster.closeClients());
after(() => cluster.end());

const test = (name, run) => runTest(name, { timeout: DEADLINE_MS }, run);

/** A test with a daemon that answers as the test says. */
const scripted = (name, run) =>
  test(name, async () => {
    const daemon = await ScriptedDaemon.start();
    const client = cluster.client({ retryDelay: 1, retryJitter: 0 }, [daemon.url]);
    try {
      await run(daemon, client);
    } finally {
      await daemon.end();
    }
  });

// --- acquire and release ---

test('lock_and_unlock', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  const lock = await client.acquire([name], 30_000);
  assert.match(lock.value, /^[0-9a-f]{40}$/);
  assert.deepEqual(lock.resources, [name]);
  assert.ok(lock.remaining > 0 && lock.remaining <= 30_000);
  assert.ok(lock.expiration > Date.now() && lock.expiration <= Date.now() + 30_000);
  assert.equal(await cluster.isFree(name), false);
  await lock.release();
  assert.equal(await cluster.isFree(name), true);
  assert.equal(lock.remaining, 0);
  assert.equal(lock.expiration, 0);
});

test('contention', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  let inside = 0;
  let most = 0;
  const routine = async () => {
    most = Math.max(most, ++inside);
    await new Promise((resolve) => setImmediate(resolve));
    inside--;
  };
  const tasks = Array.from({ length: 16 }, () =>
    client.using([name], 20_000, { wait: DEADLINE_MS }, routine),
  );
  await Promise.all(tasks);
  assert.equal(most, 1);
});

test('try_lock', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  const held = await other.acquire([name], 30_000);
  await assert.rejects(client.acquire([name], 30_000), (error) => {
    assert.ok(error instanceof ResourceLockedError && error instanceof ExecutionError);
    assert.ok(error.hint > 0 && error.hint <= 30_000);
    return true;
  });
  await held.release();
  await client.acquire([name], 30_000);
});

test('wait', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  const held = await other.acquire([name], 30_000);
  const waiting = client.acquire([name], 30_000, FOREVER);
  await cluster.waitForWaiter(name);
  await held.release();
  assert.ok((await waiting).remaining > 0);
});

test('wait_times_out', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  await other.acquire([name], 30_000);
  // As in redlock 5: retryCount x retryDelay.
  const settings = { retryCount: 3, retryDelay: 100 };
  await assert.rejects(client.acquire([name], 30_000, settings), ResourceLockedError);
  await until(async () => (await cluster.waiters(name)) === 0);
});

test('cancel_while_waiting', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  const bystander = await client.acquire([cluster.name()], 30_000, { hold: true });
  const held = await other.acquire([name], 30_000);
  const controller = new AbortController();
  const waiting = client.acquire([name], 60_000, { ...FOREVER, signal: controller.signal });
  await cluster.waitForWaiter(name);
  controller.abort(new Error('changed my mind'));
  await assert.rejects(waiting, /changed my mind/);
  await held.release();
  await (await other.acquire([name], 30_000, { wait: DEADLINE_MS })).release();
  await until(() => cluster.isFree(name));
  await client.extend(bystander, 30_000);
  assert.equal(bystander.signal.aborted, false);
});

scripted('late_on_arrival', async (daemon, client) => {
  const settings = { wait: 0 };
  const confirmed = client.acquire(['late'], 5000, settings);
  (await daemon.next()).reply(`OK ${TOKEN} 0 0 -`);
  const extend = await daemon.next();
  assert.equal(extend.text, `EXTEND late ${TOKEN} 5000`);
  extend.reply(`OK ${TOKEN} 4900 10`);
  assert.ok((await confirmed).remaining > 0);

  for (const failure of ['GONE', 'NOQUORUM 1/3 need=2 m0:timeout', `OK ${TOKEN} 0 0`]) {
    const acquired = client.acquire(['late'], 5000, settings);
    const refused = assert.rejects(acquired, (error) => error.outcome === 'LATE');
    (await daemon.next()).reply(`OK ${TOKEN} 0 0 -`);
    (await daemon.next()).reply(failure);
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK late ${TOKEN}`);
    unlock.reply('OK');
    await refused;
  }
});

scripted('late_reply_is_released', async (daemon, client) => {
  const controller = new AbortController();
  const settings = { ...FOREVER, signal: controller.signal };
  const waiting = client.acquire(['late'], 5000, settings);
  // Another waiter keeps the connection open, so the cancelled LOCK stays in line.
  const other = client.acquire(['other'], 5000, FOREVER);
  const requests = [await daemon.next(), await daemon.next()];
  assert.deepEqual(
    requests.map(({ words }) => words[1]),
    ['late', 'other'],
  );
  controller.abort();
  await assert.rejects(waiting, { name: 'AbortError' });
  requests[0].reply(`OK ${TOKEN} 4900 10 -`);
  const unlock = await daemon.next();
  assert.equal(unlock.text, `UNLOCK late ${TOKEN}`);
  unlock.reply('OK');
  requests[1].reply(`OK ${'b'.repeat(40)} 4900 10 -`);
  assert.deepEqual((await other).resources, ['other']);
});

test('many_locks', async () => {
  const client = cluster.client({ name: 'many-locks' });
  const names = Array.from({ length: 1000 }, (_, index) => `${cluster.name()}-${index}`);
  const locks = await Promise.all(
    names.map((name) => client.acquire([name], 60_000, { wait: DEADLINE_MS })),
  );
  assert.equal(new Set(locks.map((lock) => lock.value)).size, 1000);
  const conns = await cluster.ask('CLIENTS');
  assert.equal(conns.filter((line) => line.includes(' name=many-locks ')).length, 1);
  await Promise.all(locks.map((lock) => lock.release()));
  for (const name of names.filter((_, index) => index % 100 === 0))
    assert.equal(await cluster.isFree(name), true);
  const free = await Promise.all(names.map((name) => client.acquire([name], 2000)));
  await Promise.all(free.map((lock) => lock.release()));
});

scripted('wrong_arguments', async (daemon, client) => {
  const names = ['a b', 'a\nb', '', 'x'.repeat(257), 'ä'.repeat(129), 'a\x7f', '\ud800', 7];
  for (const name of names) await assert.rejects(client.acquire([name], 1000), /resource/);
  await assert.rejects(client.acquire([], 1000), TypeError);
  await assert.rejects(client.acquire(['x'.repeat(252)], 1000, { slots: 1000 }), RangeError);
  for (const duration of [-1, 0, 1.5, NaN, '5']) {
    await assert.rejects(client.acquire(['a'], duration), RangeError);
    await assert.rejects(
      client.using(['a'], duration, async () => {}),
      RangeError,
    );
  }
  for (const slots of [0, 1001, 1.5])
    await assert.rejects(client.acquire(['a'], 1000, { slots }), RangeError);
  await assert.rejects(client.using(['a'], 1000), TypeError);
  for (const settings of [{ wait: -1 }, { wait: NaN }, { wait: '5' }, { retryDelay: '5' }])
    await assert.rejects(client.acquire(['a'], 1000, settings), RangeError);
  for (const settings of [{ timeout: 0 }, { connectTimeout: NaN }, { timeout: Infinity }])
    assert.throws(() => new Redlock(daemon.url, settings), RangeError);
  for (const settings of [{ timeout: '5' }, { retryJitter: '5' }, { wait: '5' }])
    assert.throws(() => new Redlock(daemon.url, settings), RangeError);
  const acquired = client.acquire(['good'], 60_000, { wait: 0 });
  const request = await daemon.next();
  assert.equal(request.text, 'LOCK good 60000'); // the first that was sent
  request.reply(`OK ${TOKEN} 59000 1 -`);
  await acquired;
  assert.equal(daemon.accepted, 1);
});

test('fencing', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  const fences = [];
  for (let i = 0; i < 2; i++) {
    const lock = await client.acquire([name], 30_000, { fence: true });
    fences.push(lock.fence);
    await lock.release();
  }
  assert.ok(Number.isSafeInteger(fences[0]) && fences[1] > fences[0], String(fences));
  assert.equal((await client.acquire([name], 30_000)).fence, null);
});

test('slots', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  const take = () => client.acquire([name], 30_000, { slots: 2 });
  const locks = [await take(), await take()];
  const held = locks.map((lock) => lock.resources[0]);
  assert.deepEqual(held.sort(), [`${name}#1`, `${name}#2`]);
  await assert.rejects(take(), ResourceLockedError);
  await locks[0].release();
  await take();
});

test('several_resources', async () => {
  const [client, other, prefix] = [cluster.client(), cluster.client(), cluster.name()];
  const [a, b, umlaut] = ['a', 'b', 'ä'].map((letter) => `${prefix}${letter}`);
  const names = [b, a, umlaut];
  const lock = await client.acquire(names, 30_000);
  assert.deepEqual(lock.resources, names);
  assert.equal(new Set(lock.value.split(',')).size, 3);
  assert.ok(lock.remaining > 0);
  for (const name of names) assert.equal(await cluster.isFree(name), false);
  await lock.release();
  await other.acquire([b], 30_000);
  await assert.rejects(client.acquire(names, 30_000), ResourceLockedError);
  assert.equal(await cluster.isFree(a), true);
  assert.equal(await cluster.isFree(umlaut), true);
});

scripted('several_resources_in_byte_order', async (daemon, client) => {
  // In UTF-16 the emoji comes before U+FF5E, in UTF-8 after it.
  const acquired = client.acquire(['b', '\u{1f512}', '\uff5e', 'a', 'b'], 60_000);
  for (const name of ['a', 'b', '\uff5e', '\u{1f512}']) {
    const request = await daemon.next();
    assert.equal(request.words[1], name);
    request.reply(`OK ${TOKEN} 59000 1 -`);
  }
  assert.deepEqual((await acquired).resources, ['b', '\u{1f512}', '\uff5e', 'a']);
});

// --- extend ---

test('extend', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  let lock = await client.acquire([name], 2000);
  lock = await lock.extend(20_000);
  assert.ok(lock.remaining > 10_000);
  assert.equal(await cluster.isFree(name), false);
});

test('extend_after_unlock', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  const lock = await client.acquire([name], 30_000);
  const copy = new Lock(other, lock.resources, lock.value, [], lock.expiration);
  await copy.extend(30_000);
  await other.release(copy);
  await assert.rejects(lock.extend(30_000), LostError);
  assert.ok(lock.signal.aborted);
  assert.equal(lock.signal.error.reason, 'gone');
  assert.equal(lock.remaining, 0);
  await assert.rejects(lock.extend(30_000), LostError);
});

test('automatic_extension', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  await client.using([name], 7000, async (signal, lock) => {
    const end = performance.now() + 8000;
    await until(() => {
      assert.ok(lock.remaining > 0);
      assert.equal(signal.aborted, false);
      return performance.now() > end;
    });
    await assert.rejects(other.acquire([name], 3000), ResourceLockedError);
  });
  assert.equal(await cluster.isFree(name), true);
});

test('hold', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  const lock = await client.acquire([name], 7000, { hold: true });
  const end = performance.now() + 8000;
  await until(() => performance.now() > end || lock.signal.aborted);
  assert.equal(lock.signal.aborted, false);
  await assert.rejects(other.acquire([name], 1500), ResourceLockedError);
  await client.quit();
  assert.equal(await cluster.isFree(name), true);
});

/** Waits until the work is cancelled, which must not be long after the deadline. */
const abortedInTime = async (lock) => {
  const end = performance.now() + lock.remaining;
  await aborted(lock.signal);
  assert.ok(performance.now() < end + 5000);
};

test('deadline_passes', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  const lock = await client.acquire([name], 2000, { wait: DEADLINE_MS });
  await abortedInTime(lock);
  assert.equal(lock.remaining, 0);
  assert.ok(lock.signal.error instanceof LostError);
  assert.equal(lock.signal.error.message, `the lock ${name} is lost: its time is over`);
  assert.equal(lock.signal.reason, lock.signal.error);
  await assert.rejects(lock.extend(500), LostError);
});

// --- loss ---

test('break_hold', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  const lock = await client.acquire([name], 60_000, { hold: true });
  const { signal } = lock;
  assert.equal((await cluster.redlock('break', name)).exit, 0);
  await aborted(signal);
  assert.equal(signal.error.reason, 'gone');
  assert.equal(signal.error.outcome, undefined); // by LOST, before an EXTEND is answered with GONE
  assert.equal(lock.remaining, 0);
});

test('break_automatic', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  let deadline;
  const work = client.using([name], 6000, async (signal, lock) => {
    deadline = performance.now() + lock.remaining;
    assert.equal((await cluster.redlock('break', name)).exit, 0);
    await aborted(signal);
    assert.ok(performance.now() < deadline);
    throw signal.error;
  });
  await assert.rejects(work, (error) => error instanceof LostError && error.reason === 'gone');
});

const whileMastersAreCut = async (run) => {
  await cluster.run('cut-masters');
  try {
    await run();
  } finally {
    await cluster.run('heal-masters');
    const client = cluster.client();
    await client.acquire([cluster.name()], 2000, { wait: DEADLINE_MS });
  }
};

const mastersCut = async (settings) => {
  const client = cluster.client();
  const work = client.using([cluster.name()], 3000, settings, async (signal, lock) => {
    await whileMastersAreCut(async () => {
      await aborted(signal);
      assert.ok(signal.error instanceof LostError);
      assert.ok(lock.remaining > 0, 'the work has time to stop');
    });
    return 'stopped';
  });
  await work.catch((error) => assert.ok(error instanceof LostError));
};

test('masters_cut_hold', () => mastersCut({ hold: true }));

test('masters_cut_automatic', () => mastersCut({}));

test('lost_in_time', async () => {
  const client = cluster.client();
  const lock = await client.acquire([cluster.name()], 6000, { hold: true });
  let remaining = 0;
  lock.signal.addEventListener('abort', () => (remaining = lock.remaining));
  await whileMastersAreCut(() => aborted(lock.signal));
  assert.ok(remaining > 0);
});

test('daemon_paused', async () => {
  const client = cluster.client({ timeout: 1500 });
  const lock = await client.acquire([cluster.name()], 3000, { hold: true });
  const { signal } = lock;
  await cluster.run('pause-daemon', 0);
  try {
    await abortedInTime(lock);
  } finally {
    await cluster.run('continue-daemon', 0);
  }
  assert.ok(signal.error instanceof LostError);
});

test('daemon_killed_hold', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  const { signal } = await client.acquire([name], 3000, { hold: true });
  await cluster.run('kill-daemon', 0);
  await aborted(signal);
  assert.equal(signal.error.reason, 'closed');
  await cluster.run('start-daemon', 0);
  const again = await client.acquire([name], 2000, { wait: DEADLINE_MS });
  assert.ok(again.remaining > 0);
});

test('daemon_killed_automatic', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  await client.using(
    [name],
    20_000,
    { automaticExtensionThreshold: 19_000 },
    async (signal, lock) => {
      const [token, expiration] = [lock.value, lock.expiration];
      await cluster.run('kill-daemon', 0);
      await cluster.run('start-daemon', 0);
      await until(() => lock.expiration > expiration + 3000);
      assert.equal(signal.aborted, false);
      assert.equal(lock.value, token);
      assert.equal(await cluster.isFree(name), false);
    },
  );
  assert.equal(await cluster.isFree(name), true);
});

test('client_suspended', async () => {
  const [other, name] = [cluster.client(), cluster.name()];
  const program = fileURLToPath(new URL('suspended.js', import.meta.url));
  const child = spawn(process.execPath, [program, cluster.urls[0], name], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    assert.equal((await lines.next()).value, 'held');
    child.kill('SIGSTOP');
    await other.acquire([name], 30_000, { wait: DEADLINE_MS });
    child.stdin.write('check\n');
    child.kill('SIGCONT');
    let line;
    while (!(line = (await lines.next()).value).startsWith('check:'))
      assert.equal(line, 'tick: lost');
    assert.equal(line, 'check: lost 0 true expired');
  } finally {
    child.kill('SIGKILL');
  }
});

// --- connections ---

const lockThrough = async (kind) => {
  const client = cluster.client({}, [cluster.started.daemons[0][kind]]);
  await (await client.acquire([cluster.name()], 30_000)).release();
};

test('tcp', () => lockThrough('tcp'));

test('unix', () => lockThrough('unix'));

test('tls', async () => {
  const url = cluster.started.daemons[0].tls;
  const ca = fs.readFileSync(cluster.started.ca);
  const client = cluster.client({ tls: { ca } }, [url]);
  await (await client.acquire([cluster.name()], 30_000)).release();
  const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
  for (const value of [undefined, '0']) {
    if (value !== undefined) process.env.NODE_TLS_REJECT_UNAUTHORIZED = value; // not for this client
    const without = cluster.client({}, [url]);
    try {
      await assert.rejects(without.acquire(['x'], 1000), (error) => {
        assert.ok(error instanceof UnavailableError);
        assert.match(error.message, /certificate; set tls\.ca$/);
        return true;
      });
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  }
});

test('tls_sends_no_secret_to_an_unknown_peer', async () => {
  const folder = path.dirname(cluster.started.ca);
  const [key, cert] = ['key', 'certificate'].map((name) =>
    fs.readFileSync(path.join(folder, name)),
  );
  let received = '';
  const closed = new Promise((resolve) => {
    const server = tls.createServer({ key, cert }, (conn) => {
      conn.on('data', (part) => (received += part)).on('error', () => {});
      conn.on('close', () => resolve(server.close()));
    });
    server.on('tlsClientError', () => resolve(server.close()));
    server.listen(0, '127.0.0.1', async () => {
      const url = `tls://localhost:${server.address().port}`;
      const client = cluster.client({ secret: 'a-secret-for-the-daemon' }, [url]);
      await assert.rejects(client.acquire(['a'], 1000), UnavailableError);
    });
  });
  await closed;
  assert.equal(received, '');
});

test('tls_hold_ends_cleanly', async () => {
  const name = cluster.name();
  const ca = fs.readFileSync(cluster.started.ca);
  const client = cluster.client({ tls: { ca } }, [cluster.started.daemons[0].tls]);
  const { signal } = await client.acquire([name], 30_000, { hold: true });
  await client.quit();
  assert.ok(signal.aborted);
  const other = cluster.client();
  await other.acquire([name], 5000, { wait: 10_000 });
});

test('name', async () => {
  const name = `node-${process.pid}`;
  const client = cluster.client({ name });
  await (await client.acquire([cluster.name()], 30_000)).release();
  const clients = await cluster.ask('CLIENTS');
  assert.ok(clients.some((line) => line.includes(` name=${name} `)));
});

test('no_daemon', async () => {
  const daemon = await ScriptedDaemon.start();
  await daemon.end();
  const client = cluster.client({ timeout: 200 }, [daemon.url]);
  for (const settings of [{}, FOREVER])
    await assert.rejects(client.acquire(['a'], 1000, settings), (error) => {
      assert.ok(error instanceof UnavailableError);
      assert.ok(error.message.includes(daemon.url));
      return true;
    });
});

test('daemon_away', async () => {
  const timeout = 500;
  const daemon = await ScriptedDaemon.start();
  const client = cluster.client({ timeout }, [daemon.url]);
  const acquired = client.acquire(['a'], 30_000, FOREVER);
  const { conn } = await daemon.next();
  daemon.refuses = Infinity;
  conn.destroy();
  await new Promise((resolve) => setTimeout(resolve, 3 * timeout));
  daemon.refuses = 0;
  (await daemon.next()).reply(`OK ${TOKEN} 29000 0 -`);
  assert.equal((await acquired).value, TOKEN);
  await daemon.end();
});

test('second_daemon', async () => {
  const [client, name] = [cluster.client({}, cluster.urls), cluster.name()];
  await client.acquire([cluster.name()], 30_000);
  await cluster.run('kill-daemon', 0);
  try {
    await client.acquire([name], 30_000);
    assert.match((await cluster.ask(`LOCKS ${name}`, 1))[0], / token=[0-9a-f]{8} /);
  } finally {
    await cluster.run('start-daemon', 0);
  }
});

test('daemon_stops', async () => {
  const [client, name] = [cluster.client({}, cluster.urls), cluster.name()];
  let stopped;
  await client.using([name], 9000, async (signal, lock) => {
    await cluster.run('stop-daemon', 0);
    stopped = true;
    const { expiration } = lock;
    await until(() => lock.expiration > expiration + 1000);
    assert.equal(signal.aborted, false);
  });
  assert.equal(await cluster.isFree(name, 1), true);
  if (stopped) await cluster.run('start-daemon', 0);
});

test('waiter_moves', async () => {
  const [client, name] = [cluster.client({}, cluster.urls), cluster.name()];
  const other = cluster.client({}, cluster.urls.slice(1));
  const held = await other.acquire([name], 60_000);
  const waiting = client.acquire([name], 5000, { wait: DEADLINE_MS });
  await cluster.waitForWaiter(name);
  await cluster.run('kill-daemon', 0);
  try {
    await cluster.waitForWaiter(name, 1);
    await held.release();
    assert.ok((await waiting).remaining > 0);
  } finally {
    await cluster.run('start-daemon', 0);
  }
});

scripted('unlock_again', async (daemon, client) => {
  const acquired = client.acquire(['again'], 20_000);
  (await daemon.next()).reply(`OK ${TOKEN} 19000 1 -`);
  const lock = await acquired;
  for (const [ask, expected, reply] of [
    [() => lock.extend(20_000), `EXTEND again ${TOKEN} 20000`, `OK ${TOKEN} 19000 1`],
    [() => lock.release(), `UNLOCK again ${TOKEN}`, 'GONE'],
  ]) {
    const asked = ask();
    const first = await daemon.next();
    assert.equal(first.text, expected);
    first.conn.destroy();
    const second = await daemon.next();
    assert.equal(second.text, expected);
    assert.notEqual(second.conn, first.conn);
    second.reply(reply);
    await asked;
  }
});

scripted('loss_says_why', async (daemon, client) => {
  const held = 'it was held for as long as the daemon allows (max_hold)';
  const voted = 'too few masters could vote';
  const gone = 'the token does not hold it any more';
  let answer;
  let ttl;
  let grants = 0;
  const serve = async () => {
    for (;;) {
      const { words, conn, reply } = await daemon.next();
      const token = `${grants}`.padStart(40, '0');
      if (words[0] === 'UNLOCK') reply('OK');
      else if (words[0] === 'EXTEND') answer.startsWith('LOST') || reply(answer);
      else reply(`OK ${token} ${ttl} 0 -`);
      if (words[0] === 'LOCK' && answer.startsWith('LOST'))
        setImmediate(() => conn.write(`! LOST a ${token} ${answer.slice(5)}\n`));
    }
  };
  serve();
  for (const [reply, reason, text] of [
    ['LOST limit', 'limit', held],
    ['LOST noquorum', 'noquorum', voted],
    ['LOST late', 'late', 'the masters answered too late'],
    ['LOST gone', 'gone', gone],
    ['LOST overdue', 'overdue', 'the daemon was stopped or too busy'],
    ['LOST shutdown', 'shutdown', 'the daemon is stopping'],
    ['LOST news', 'news', 'news'],
    ['GONE', 'gone', gone],
    ['LIMIT hold', 'unextended', held],
    [
      'LIMIT extensions',
      'unextended',
      'it was extended as often as the daemon allows (max_extensions)',
    ],
    [
      'NOQUORUM 1/3 need=2 m0:timeout',
      'unextended',
      `not extended in time: a: ${voted}: 1/3 need=2 m0:timeout`,
    ],
    ['', 'unextended', `not extended in time: ${daemon.url}: connect ECONNREFUSED`],
  ]) {
    answer = reply;
    grants++;
    // LOST must come before the TTL is over. With the others, an extension must fail before that.
    ttl = reply.startsWith('LOST') ? 60_000 : 3000;
    const lost = client.using(['a'], ttl, { hold: reply.startsWith('LOST') }, async (signal) => {
      if (reply === '') await daemon.end();
      await aborted(signal);
      throw signal.error;
    });
    await assert.rejects(lost, (error) => {
      assert.ok(error instanceof LostError, error.stack);
      assert.equal(error.reason, reason, error.message);
      assert.ok(error.message.startsWith(`the lock a is lost: ${text}`), error.message);
      return true;
    });
  }
});

test('ttl_too_long', async () => {
  const client = cluster.client();
  const message =
    /between \w+ and \w+; for work that takes longer, let the lock be extended \(using\)$/;
  await assert.rejects(client.acquire([cluster.name()], 3_600_000), { outcome: 'ERR', message });
});

scripted('limit', async (daemon, client) => {
  const rejects = (asked, limit) =>
    assert.rejects(asked, (error) => error instanceof UnavailableError && error.limit === limit);
  const answer = async (verb, reply) => {
    const request = await daemon.next();
    assert.equal(request.words[0], verb);
    request.reply(reply);
  };
  const acquired = rejects(client.acquire(['a'], 6000, FOREVER), 'waiters');
  await answer('LOCK', 'LIMIT waiters');
  await acquired;
  let unlocked;
  const used = client.using(['a'], 6000, async (signal, lock) => {
    const extended = rejects(lock.extend(6000), 'operations');
    await answer('EXTEND', 'LIMIT operations');
    await extended;
    await answer('EXTEND', 'LIMIT hold');
    await answer('EXTEND', `OK ${TOKEN} 5900 0`);
    unlocked = answer('UNLOCK', 'LIMIT operations').then(() => answer('UNLOCK', 'OK'));
  });
  await answer('LOCK', `OK ${TOKEN} 5900 0 -`);
  await used;
  await unlocked;
});

scripted('truncated_reply', async (daemon, client) => {
  const acquired = client.acquire(['short'], 20_000);
  for (let i = 0; i < 2; i++) {
    const { conn, tag } = await daemon.next();
    conn.end(`#${tag} OK ${TOKEN} 2`);
  }
  await assert.rejects(acquired, UnavailableError);
  assert.equal(daemon.untaken, 0);
});

test('no_quorum', async () => {
  const [client, name] = [cluster.client(), cluster.name()];
  await whileMastersAreCut(() =>
    assert.rejects(client.acquire([name], 2000), (error) => {
      assert.ok(error instanceof NoQuorumError);
      assert.match(error.message, /need=2 .*m\d:\w+/);
      return true;
    }),
  );
  await client.acquire([name], 2000, { wait: DEADLINE_MS });
});

test('close_while_waiting', async () => {
  const [client, other, name] = [cluster.client(), cluster.client(), cluster.name()];
  await other.acquire([name], 30_000);
  const waiting = client.acquire([name], 30_000, FOREVER);
  await cluster.waitForWaiter(name);
  const rejected = assert.rejects(waiting, UnavailableError);
  await client.quit();
  await rejected;
  await until(async () => (await cluster.waiters(name)) === 0);
  await assert.rejects(client.acquire([name], 1000), UnavailableError);
});
