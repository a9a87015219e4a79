// The pure parts, and the API of redlock 5.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import Redlock, * as api from '../index.js';
import { createClock } from '../lib/clock.js';
import {
  inByteOrder,
  lockRequest,
  parseAddress,
  readExtension,
  readGrant,
  replyError,
} from '../lib/protocol.js';
import { aborted, ScriptedDaemon, until } from './cluster.js';

const TOKEN = '0123456789abcdef0123456789abcdef01234567';
const OTHER_TOKEN = '1123456789abcdef0123456789abcdef01234567';
const timeout = 60_000;

// --- the clock ---

function fakeClock(withUptime) {
  const time = { monotonic: 1000, wall: 5_000_000, uptime: 77_000 };
  const read = (name) => () => time[name];
  const uptime = withUptime ? () => Math.floor(time.uptime / 10) * 10 : undefined;
  const now = createClock(read('monotonic'), read('wall'), uptime);
  const pass = (ms, ...clocks) => clocks.forEach((clock) => (time[clock] += ms));
  return {
    now,
    run: (ms) => pass(ms, 'monotonic', 'wall', 'uptime'),
    sleep: (ms) => pass(ms, 'wall', 'uptime'),
    step: (ms) => pass(ms, 'wall'),
  };
}

test('clock_counts_suspend', () => {
  for (const withUptime of [true, false]) {
    const clock = fakeClock(withUptime);
    const start = clock.now();
    clock.run(100);
    assert.equal(clock.now() - start, 100);
    clock.sleep(60_000);
    const slept = clock.now() - start;
    assert.ok(slept >= 60_100 && slept <= 60_120, String(slept));
    clock.run(50);
    assert.equal(clock.now() - start, slept + 50);
    clock.sleep(60_000);
    assert.ok(clock.now() - start >= 120_150);
  }
});

test('clock_ignores_steps_of_the_time_of_day', () => {
  const clock = fakeClock(true);
  const start = clock.now();
  for (const step of [3_600_000, -7_200_000, 30]) {
    clock.step(step);
    clock.run(10);
    clock.now();
  }
  assert.equal(clock.now() - start, 30);
});

test('clock_sees_suspend_that_a_step_back_hides', () => {
  const clock = fakeClock(true);
  const start = clock.now();
  clock.sleep(60_000);
  clock.step(-59_000);
  assert.ok(clock.now() - start >= 60_000);
});

test('clock_without_uptime_errs_towards_earlier_deadlines', () => {
  const clock = fakeClock(false);
  const start = clock.now();
  clock.step(5000);
  assert.equal(clock.now() - start, 5000);
  clock.step(-9000);
  assert.equal(clock.now() - start, 5000);
});

// --- the protocol ---

test('addresses', () => {
  const tcp = { host: '127.0.0.1', port: 7335, tls: false };
  for (const [url, expected] of [
    ['tcp://127.0.0.1:7335', tcp],
    ['tcp://127.0.0.1:7335/', tcp],
    ['tls://locks.example:7337', { host: 'locks.example', port: 7337, tls: true }],
    ['tcp://[::1]:7335', { host: '::1', port: 7335, tls: false }],
    ['unix:/run/redlockd.sock', { path: '/run/redlockd.sock' }],
  ])
    assert.deepEqual(parseAddress(url), { url, ...expected });
  const wrong = ['', 'unix:relative', 'tcp://host', 'tcp://host:0', 'tcp://host:65536', 'host:1'];
  for (const url of [...wrong, 'redis://host:1', 'tcp://user:secret@host:1', 'tcp://a b:1']) {
    assert.throws(() => parseAddress(url), TypeError);
    assert.throws(
      () => new Redlock(url),
      (error) => !error.message.includes('secret'),
    );
  }
  for (const none of [[], undefined, null, 7335])
    assert.throws(() => new Redlock(none), {
      name: 'TypeError',
      message: 'the address of a redlockd is required',
    });
});

test('lock_requests', () => {
  for (const [wait, settings, expected] of [
    [0, {}, 'LOCK a 500'],
    [0.2, {}, 'LOCK a 500 WAIT 1'],
    [Infinity, {}, 'LOCK a 500 WAIT 86400000'],
    [0, { slots: 3, fence: true, hold: true }, 'LOCK a 500 SLOTS 3 FENCE HOLD'],
    [0, { linger: true }, 'LOCK a 500 HOLD LINGER'],
  ])
    assert.equal(lockRequest('a', 500, wait, settings), expected);
});

test('grants', () => {
  const grant = { name: 'a', token: TOKEN, validityMs: 29_689, elapsedMs: 11, fence: null };
  assert.deepEqual(readGrant(`OK ${TOKEN} 29689 11 -`, 'a'), grant);
  assert.deepEqual(readGrant(`OK ${TOKEN} 29689 11 - later fields`, 'a'), grant);
  const fenced = { ...grant, fence: 1764178014012345 };
  assert.deepEqual(readGrant(`OK ${TOKEN} 29689 11 1764178014012345`, 'a'), fenced);
  const slot = readGrant(`OK ${TOKEN} 29689 11 - a#3#12`, 'a#3', 20);
  assert.equal(slot.name, 'a#3#12');
});

test('malformed_grants_are_no_grants', () => {
  for (const reply of [
    'OK',
    `OK ${TOKEN}`,
    `OK ${TOKEN} 2`,
    `OK ${TOKEN} 29689 11`,
    `OK ${TOKEN.slice(1)} 29689 11 -`,
    `OK ${TOKEN.toUpperCase()} 29689 11 -`,
    `OK ${TOKEN} 29689 -11 -`,
    `OK ${TOKEN} 1e9 11 -`,
    `OK ${TOKEN} 29689 11 x`,
    `OK ${TOKEN} ${'9'.repeat(16)} 11 -`,
  ])
    assert.equal(readGrant(reply, 'a'), null, reply);
  assert.equal(readGrant(`OK ${TOKEN} 29689 11 -`, 'a', 3), null);
  const extension = `OK ${TOKEN} 500 10`;
  assert.deepEqual(readExtension(extension, TOKEN), { validityMs: 500, elapsedMs: 10 });
  assert.equal(readExtension(extension, 'a'.repeat(40)), null);
  for (const reply of ['OK', `OK ${TOKEN} 500`, `OK ${TOKEN} 500 x`, `OK ${TOKEN} Infinity 1`])
    assert.equal(readExtension(reply, TOKEN), null, reply);
});

test('names_are_sorted_by_their_bytes', () => {
  assert.deepEqual(inByteOrder(['ä', 'b', '\u{1f512}', 'Z', '\uff5e']), [
    'Z',
    'b',
    'ä',
    '\uff5e',
    '\u{1f512}',
  ]);
});

test('each_reply_has_its_error', () => {
  for (const [reply, type] of [
    ['HELD 1200', api.ResourceLockedError],
    ['NOQUORUM 1/3 need=2 m0:timeout', api.NoQuorumError],
    ['LATE 900', api.ExecutionError],
    ['GONE', api.LostError],
    ['DENIED authenticate first', api.DeniedError],
    ['LIMIT waiters', api.UnavailableError],
    ['SHUTDOWN', api.UnavailableError],
    ['ERR ttl-range TTL 1h must be between 13ms and 1m', api.ExecutionError],
  ]) {
    const error = replyError(reply, 'a', 'unix:/x');
    assert.equal(error.constructor, type);
    assert.equal(error.name, type.name);
    assert.equal(error.outcome, reply.split(' ')[0]);
  }
  assert.equal(replyError('HELD 1200', 'a', '').hint, 1200);
  assert.equal(replyError('HELD -1', 'a', '').hint, -1);
});

// --- the API of redlock 5 ---

test('errors_have_the_attempts_of_redlock_5', async () => {
  const error = replyError('HELD 5', 'a', 'unix:/x');
  const [stats] = await Promise.all(error.attempts);
  assert.equal(stats.membershipSize, 1);
  assert.equal(stats.quorumSize, 1);
  assert.equal(stats.votesFor.size, 0);
  assert.equal(stats.votesAgainst.get('unix:/x'), error);
  assert.equal(new api.ExecutionError('text', []).attempts.length, 0);
  assert.equal(new api.ResourceLockedError('text').message, 'text');
});

const push = (request, line) => request.conn.write(`${line}\n`);

async function withDaemon(run, settings) {
  const daemon = await ScriptedDaemon.start();
  const client = new Redlock([daemon.url], { connectTimeout: 10_000, ...settings });
  try {
    await run(daemon, client);
  } finally {
    const done = client.quit();
    await daemon.end();
    await done;
  }
}

test('retries_become_a_wait', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    for (const [settings, expected] of [
      [undefined, 'LOCK a 5000 WAIT 2000'],
      [{ retryCount: 0 }, 'LOCK a 5000'],
      [{ retryCount: 3, retryDelay: 1000 }, 'LOCK a 5000 WAIT 3000'],
      [{ retryCount: -1 }, 'LOCK a 5000 WAIT 86400000'],
      [{ retryCount: Infinity, retryDelay: 0 }, 'LOCK a 5000 WAIT 86400000'],
      [{ wait: 7000 }, 'LOCK a 5000 WAIT 7000'],
      [{ retryCount: undefined, wait: undefined }, 'LOCK a 5000 WAIT 2000'],
    ]) {
      const acquired = client.acquire(['a'], 5000, settings);
      const request = await daemon.next();
      // The time until the request was sent counts.
      const [words, wait = '0'] = request.text.split(' WAIT ');
      const [expectedWords, expectedWait = '0'] = expected.split(' WAIT ');
      assert.equal(words, expectedWords);
      assert.ok(Number(wait) <= Number(expectedWait));
      assert.ok(Number(wait) > Number(expectedWait) / 100 || wait === expectedWait);
      request.reply(`OK ${TOKEN} 4900 1 -`);
      const lock = await acquired;
      assert.equal(lock.value, TOKEN);
      assert.equal(lock.redlock, client);
      assert.equal((await lock.attempts[0]).votesFor.size, 1);
    }
  }),
);

test('a_short_wait_for_a_daemon_has_a_retry', { timeout }, async () => {
  const settings = { retryCount: 1, retryDelay: 1000, retryJitter: 0 };
  const client = new Redlock('unix:/nowhere/redlockd.sock', settings);
  let attempts = 0;
  client.on('error', () => attempts++);
  await assert.rejects(client.acquire(['a'], 5000), api.UnavailableError);
  assert.equal(attempts, 2);
  await assert.rejects(client.acquire(['a'], 5000, { retryCount: 0 }), api.UnavailableError);
  assert.equal(attempts, 3);
  await client.quit();
});

test('undefined_settings_have_their_defaults', async () => {
  const names = ['driftFactor', 'retryCount', 'retryDelay', 'retryJitter', 'secret', 'timeout'];
  const unset = Object.fromEntries(names.map((name) => [name, undefined]));
  const client = new Redlock('unix:/x', unset);
  assert.deepEqual(client.settings, new Redlock('unix:/x').settings);
  await client.quit();
});

test('unknown_settings_are_rejected', async () => {
  const unknown = (name) => ({ name: 'TypeError', message: `unknown setting: ${name}` });
  for (const name of ['secretfile', 'signal'])
    assert.throws(() => new Redlock('unix:/x', { [name]: 'text' }), unknown(name));
  const client = new Redlock('unix:/x');
  for (const name of ['wiat', 'slot', 'timeout']) {
    await assert.rejects(client.acquire(['a'], 5000, { [name]: 3 }), unknown(name));
    await assert.rejects(client.using(['a'], 5000, { [name]: 3 }, aborted), unknown(name));
  }
  await client.quit();
});

test('extend_and_release_take_the_settings_of_redlock_5', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 5000);
    (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
    const extended = client.extend(await acquired, 9000, { retryCount: 0 });
    (await daemon.next()).reply(`OK ${TOKEN} 8900 1`);
    const released = client.release(await extended, { retryCount: 0 });
    (await daemon.next()).reply('OK');
    assert.equal((await released).attempts.length, 1);
  }),
);

test('using_returns_the_result_and_releases', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const calls = [
      (routine) => client.using(['a'], 5000, routine),
      (routine) => client.using(['a'], 5000, { retryCount: 0 }, routine),
    ];
    for (const call of calls) {
      const done = call(async (signal, lock) => {
        assert.equal(signal, lock.signal);
        assert.equal(signal.aborted, false);
        return 42;
      });
      (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
      const unlock = await daemon.next();
      assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
      unlock.reply('OK');
      assert.equal(await done, 42);
    }
    const failed = assert.rejects(
      client.using(['a'], 5000, async () => {
        throw new Error('of the routine');
      }),
      /of the routine/,
    );
    (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
    (await daemon.next()).reply('GONE');
    await failed;
  }),
);

test('using_reports_a_lock_that_was_gone', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const done = assert.rejects(
      client.using(['a'], 5000, async () => 42),
      api.LostError,
    );
    (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
    (await daemon.next()).reply('GONE');
    await done;
  }),
);

test('using_reports_a_loss_whatever_the_release_says', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    for (const unlocked of ['OK', 'GONE', 'NOQUORUM 1/3 need=2 m0:timeout']) {
      const work = async (signal) => aborted(signal).then(() => 42);
      const done = assert.rejects(client.using(['a'], 1500, work), { reason: 'unextended' });
      (await daemon.next()).reply(`OK ${TOKEN} 1490 1 -`);
      for (let verb; verb !== 'UNLOCK'; ) {
        const { words, reply } = await daemon.next();
        [verb] = words;
        reply(verb === 'UNLOCK' ? unlocked : 'NOQUORUM 1/3 need=2 m0:timeout');
      }
      await done;
    }
  }),
);

test('a_stall_does_not_hide_why_the_extension_failed', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const began = performance.now();
    const done = assert.rejects(client.using(['a'], 3000, aborted), { message: /max_hold/ });
    (await daemon.next()).reply(`OK ${TOKEN} 2990 1 -`);
    // Later than the client waits for one reply, which is a tenth of the TTL.
    const { reply: replyLate } = await daemon.next();
    await sleep(350);
    replyLate('LIMIT hold');
    await sleep(50); // so that the client has read it
    while (performance.now() < began + 2100); // the extension must be given up by then
    for (let verb; verb !== 'UNLOCK'; ) {
      const { words, reply } = await daemon.next();
      [verb] = words;
      if (verb === 'UNLOCK') reply('OK');
    }
    await done;
  }),
);

test('an_extension_that_succeeded_is_no_reason_for_a_loss', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const isNoLimit = (error) => error instanceof api.LostError && !/max_hold/.test(error.message);
    const done = assert.rejects(client.using(['a', 'b'], 6000, aborted), isNoLimit);
    let extensions = 0;
    for (let unlocks = 0; unlocks < 2; ) {
      const { words, reply } = await daemon.next();
      const [verb, name] = words;
      if (verb === 'UNLOCK') unlocks++;
      if (verb === 'UNLOCK') reply('OK');
      else if (verb === 'LOCK') reply(`OK ${TOKEN} 5990 1 -`);
      else if (name === 'a') reply(extensions++ === 0 ? 'LIMIT hold' : `OK ${TOKEN} 5990 1`);
    }
    await done;
  }),
);

// The daemon does not answer the other EXTEND, and `timeout` is long.
test('one_lock_that_is_gone_ends_all_at_once', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      const acquired = client.acquire(['a', 'b'], 60_000);
      for (let i = 0; i < 2; i++) (await daemon.next()).reply(`OK ${TOKEN} 59000 1 -`);
      const lock = await acquired;
      const extended = assert.rejects(lock.extend(60_000), { reason: 'gone' });
      (await daemon.next()).reply('GONE');
      const other = await daemon.next();
      await aborted(lock.signal);
      assert.equal(lock.signal.error.reason, 'gone');
      assert.equal(lock.remaining, 0);
      other.reply(`OK ${TOKEN} 59000 1`);
      await extended;
    },
    { timeout: 2 * timeout },
  ),
);

// At first only extend() has given up, then also the request itself.
test('gone_counts_after_the_extension_was_given_up', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      for (const pause of [0, 1000]) {
        const acquired = client.acquire(['a'], 60_000);
        (await daemon.next()).reply(`OK ${TOKEN} 59000 1 -`);
        const lock = await acquired;
        const given = assert.rejects(lock.extend(60_000), api.UnavailableError);
        const extend = await daemon.next();
        await given;
        await sleep(pause);
        assert.ok(lock.remaining > 0 && !lock.signal.aborted);
        extend.reply('GONE');
        await aborted(lock.signal);
        assert.equal(lock.signal.error.reason, 'gone');
        assert.equal(lock.remaining, 0);
      }
    },
    { timeout: 500 },
  ),
);

// Its extension ends after a second because the lock does, which says nothing about the daemon.
test('a_short_extension_keeps_its_connection', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      const acquired = client.acquire(['a'], 60_000);
      (await daemon.next()).reply(`OK ${TOKEN} 1000 1 -`);
      const lock = await acquired;
      const extended = assert.rejects(lock.extend(60_000), api.LostError);
      await daemon.next();
      await extended;
      const other = client.acquire(['b'], 60_000);
      (await daemon.next()).reply(`OK ${OTHER_TOKEN} 59000 1 -`);
      await other;
      assert.equal(daemon.accepted, 1);
    },
    { timeout: 60_000 },
  ),
);

// A lock that is lost leaves time to stop, until another client can have it. The second time uses a
// new connection: GONE to an UNLOCK of the first time may come later than the end of release().
test('a_lost_lock_that_is_gone_has_no_time_left', { timeout }, async () => {
  for (const isByPush of [true, false])
    await withDaemon(async (daemon, client) => {
      const acquired = client.acquire(['a', 'b'], 60_000, { hold: true });
      const grant = await daemon.next();
      grant.reply(`OK ${TOKEN} 59000 1 -`);
      (await daemon.next()).reply(`OK ${OTHER_TOKEN} 59000 1 -`);
      const lock = await acquired;
      const extended = assert.rejects(lock.extend(60_000), { reason: 'noquorum' });
      const extensions = [await daemon.next(), await daemon.next()];
      grant.conn.write(`! LOST a ${TOKEN} noquorum\n`);
      await aborted(lock.signal);
      assert.ok(lock.remaining > 0);
      if (isByPush) grant.conn.write(`! LOST b ${OTHER_TOKEN} gone\n`);
      else extensions[1].reply('GONE');
      await until(() => lock.remaining === 0);
      extensions[0].reply(`OK ${TOKEN} 59000 1`);
      if (isByPush) extensions[1].reply(`OK ${OTHER_TOKEN} 59000 1`);
      await extended;
      const released = assert.rejects(lock.release(), { reason: 'noquorum' });
      for (let i = 0; i < 2; i++) (await daemon.next()).reply('GONE');
      await released;
    });
});

test('extend_rejects_if_the_lock_has_ended_meanwhile', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    for (const reason of ['gone', 'released']) {
      const acquired = client.acquire(['a'], 60_000, { hold: true });
      const grant = await daemon.next();
      grant.reply(`OK ${TOKEN} 59000 1 -`);
      const lock = await acquired;
      const extended = assert.rejects(lock.extend(60_000), { reason });
      const extend = await daemon.next();
      let released;
      if (reason === 'gone') grant.conn.write(`! LOST a ${TOKEN} gone\n`);
      else released = lock.release();
      extend.reply(`OK ${TOKEN} 59000 1`);
      await extended;
      if (released) (await daemon.next()).reply('OK');
      await released;
    }
  }),
);

// The daemon answers only that extension. The automatic one then has no reason to end the lock.
test('an_extension_by_the_program_will_do', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    let begun;
    let extended;
    const work = async (signal, lock) => {
      await new Promise((resolve) => (begun = resolve));
      await lock.extend(20_000);
      await sleep(3000); // it would have given up by then
      assert.ok(!signal.aborted && lock.remaining > 6000);
      extended = true;
    };
    const done = client.using(['a'], 6000, work);
    for (let verb; verb !== 'UNLOCK'; ) {
      const { words, reply } = await daemon.next();
      [verb] = words;
      if (verb === 'LOCK') reply(`OK ${TOKEN} 5990 1 -`);
      else if (verb === 'UNLOCK') reply('OK');
      else if (words[3] === '20000') reply(`OK ${TOKEN} 19990 1`);
      else begun();
    }
    await done;
    assert.ok(extended);
  }),
);

// The daemon does not answer UNLOCK before the caller has its error, and `timeout` is long.
test('a_loss_is_reported_before_the_release', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      for (const [token, use] of [
        ['a'.repeat(40), (work) => client.using(['a'], 60_000, { hold: true }, work)],
        [
          'b'.repeat(40),
          async (work) => {
            const lock = await client.acquire(['a'], 60_000, { hold: true });
            await work(lock.signal);
            await lock.release();
          },
        ],
      ]) {
        let request;
        const work = async (signal) => {
          push(request, `! LOST a ${token} noquorum`);
          await aborted(signal);
        };
        const lost = assert.rejects(use(work), { reason: 'noquorum' });
        request = await daemon.next();
        request.reply(`OK ${token} 59000 1 -`);
        await lost;
        const unlock = await daemon.next();
        assert.equal(unlock.text, `UNLOCK a ${token}`);
        unlock.reply('OK');
      }
      const acquired = client.acquire(['a'], 5000);
      (await daemon.next()).reply(`OK ${TOKEN} 2000 1 -`);
      const lock = await acquired;
      await until(() => lock.remaining === 0);
      await assert.rejects(lock.release(), { reason: 'expired' });
      (await daemon.next()).reply('OK');
    },
    { timeout },
  ),
);

test('a_release_waits_no_longer_than_the_lock_lives', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      const events = [];
      client.on('error', (error) => events.push(error));
      const failed = assert.rejects(
        client.using(['a'], 60_000, async () => {
          throw new Error('of the routine');
        }),
        /of the routine/,
      );
      (await daemon.next()).reply(`OK ${TOKEN} 2000 1 -`);
      const first = await daemon.next();
      assert.equal(first.text, `UNLOCK a ${TOKEN}`);
      await failed;
      first.reply('OK');

      const done = client.using(['a'], 60_000, async () => 42);
      (await daemon.next()).reply(`OK ${TOKEN} 2000 1 -`);
      const second = await daemon.next();
      assert.equal(await done, 42);
      assert.deepEqual(
        events.map((error) => error.message),
        ['a: no answer to UNLOCK in time'],
      );
      second.reply('OK');
    },
    { timeout },
  ),
);

test('quit_waits_for_the_release_of_a_lost_lock', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      const lost = assert.rejects(client.using(['a'], 60_000, { hold: true }, aborted));
      const request = await daemon.next();
      request.reply(`OK ${TOKEN} 59000 1 -`);
      push(request, `! LOST a ${TOKEN} noquorum`);
      await lost;
      let hasQuit = false;
      const quit = client.quit().then(() => (hasQuit = true));
      const unlock = await daemon.next();
      assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
      assert.equal(hasQuit, false);
      unlock.reply('OK');
      await quit;
    },
    { timeout },
  ),
);

test('quit_does_not_wait_for_a_daemon_that_is_away', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      const lost = assert.rejects(client.using(['a'], 60_000, { hold: true }, aborted));
      (await daemon.next()).reply(`OK ${TOKEN} 59000 1 -`);
      await daemon.end();
      await lost;
      await client.quit();
    },
    { timeout },
  ),
);

test('error_event', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const events = [];
    client.on('error', (error) => events.push(error));
    const failed = client.acquire(['a'], 5000, { retryCount: 0 });
    const rejected = assert.rejects(failed, api.ExecutionError);
    (await daemon.next()).reply('HELD 900');
    await rejected;
    assert.ok(events[0] instanceof api.ResourceLockedError);
  }),
);

test('a_listener_that_throws_costs_no_reply', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const uncaught = [];
    process.setUncaughtExceptionCaptureCallback((error) => uncaught.push(error.reason));
    client.on('error', (error) => {
      throw error;
    });
    const held = client.acquire(['a'], 5000, { hold: true });
    (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
    await held;
    const acquired = client.acquire(['b'], 5000);
    const { conn, tag } = await daemon.next();
    conn.write(`! LOST a ${TOKEN} noquorum\n#${tag} OK ${TOKEN} 4900 1 -\n`);
    await acquired;
    process.setUncaughtExceptionCaptureCallback(null);
    assert.deepEqual(uncaught, ['noquorum']);
  }),
);

// --- the connection ---

test('requests_of_one_pass_are_one_write', { timeout }, () =>
  withDaemon(
    async (daemon, client) => {
      const first = client.acquire(['first'], 5000);
      (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
      await first;
      const before = daemon.packets;
      const locks = Array.from({ length: 64 }, (_, index) => client.acquire([`a${index}`], 5000));
      for (let i = 0; i < 64; i++) (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
      await Promise.all(locks);
      assert.equal(daemon.packets, before + 1);
      assert.equal(daemon.accepted, 1);
    },
    { timeout }, // long, so that the client sends no PING meanwhile
  ),
);

test('replies_may_arrive_in_pieces_and_in_any_order', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const locks = [client.acquire(['a'], 5000), client.acquire(['b'], 5000)];
    const [a, b] = [await daemon.next(), await daemon.next()];
    const [tokenA, tokenB] = ['a'.repeat(40), 'b'.repeat(40)];
    const lines = [
      `#${b.tag} OK ${tokenB} 4900 1 -`,
      `! WARN x ${TOKEN} m0:\u{1f512}`,
      `#${a.tag} OK ${tokenA} 4900 1 -`,
    ];
    const text = lines.map((line) => `${line}\n`).join('');
    for (const byte of Buffer.from(text)) {
      a.conn.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(
      (await Promise.all(locks)).map((lock) => lock.value),
      [tokenA, tokenB],
    );
  }),
);

test('lost_in_the_packet_of_the_grant', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const lost = assert.rejects(
      client.acquire(['a'], 5000, { hold: true }),
      (error) => error instanceof api.LostError && error.reason === 'noquorum',
    );
    const { conn, tag } = await daemon.next();
    conn.write(`#${tag} OK ${TOKEN} 4900 1 -\n! LOST a ${TOKEN} noquorum\n`);
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
    unlock.reply('OK');
    await lost;
  }),
);

test('warnings_and_losses_go_to_their_lock_only', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const warnings = [];
    client.on('warning', (warning) => warnings.push(warning));
    const tokens = ['a'.repeat(40), 'b'.repeat(40)];
    const locks = [];
    let request;
    for (const token of tokens) {
      const acquired = client.acquire(['x'], 60_000, { hold: true });
      (request = await daemon.next()).reply(`OK ${token} 59000 1 -`);
      locks.push(await acquired);
    }
    push(request, `! WARN x ${tokens[1]} m2:restarted`);
    push(request, `! LOST x ${TOKEN} gone`);
    push(request, `! NEWS of a later version`);
    push(request, `! LOST x ${tokens[0]} limit`);
    await aborted(locks[0].signal);
    assert.equal(locks[0].signal.error.reason, 'limit');
    assert.equal(locks[1].signal.aborted, false);
    assert.deepEqual(warnings, [{ resource: 'x', reason: 'm2:restarted' }]);
  }),
);

test('a_cancelled_wait_ends_its_connection', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const controller = new AbortController();
    const settings = { retryCount: -1, signal: controller.signal };
    const rejected = assert.rejects(client.acquire(['a'], 5000, settings), { name: 'AbortError' });
    await daemon.next();
    controller.abort();
    await rejected;
    await until(() => daemon.conns.size === 0);
    await assert.rejects(client.acquire(['a'], 5000, settings), { name: 'AbortError' });
    const acquired = client.acquire(['good'], 5000, { wait: 0 });
    const request = await daemon.next();
    assert.equal(request.text, 'LOCK good 5000'); // the first after the one that was cancelled
    request.reply(`OK ${TOKEN} 4900 1 -`);
    await acquired;
    assert.equal(daemon.accepted, 2);
  }),
);

test('a_grant_that_crosses_the_cancellation_is_released', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const controller = new AbortController();
    const settings = { retryCount: -1, signal: controller.signal };
    const rejected = assert.rejects(client.acquire(['a'], 5000, settings), { name: 'AbortError' });
    const request = await daemon.next();
    // Before the BYE that answers the QUIT.
    request.conn.prependOnceListener('data', () => request.reply(`OK ${TOKEN} 4900 1 -`));
    controller.abort();
    await rejected;
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
    unlock.reply('OK');
  }),
);

test('a_grant_that_crosses_quit_is_released', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const rejected = assert.rejects(client.acquire(['a'], 5000), api.UnavailableError);
    const request = await daemon.next();
    request.conn.prependOnceListener('data', () => request.reply(`OK ${TOKEN} 4900 1 -`));
    const quit = client.quit();
    await rejected;
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
    unlock.reply('OK');
    await quit;
  }),
);

test('a_lock_is_released_if_its_acquire_is_cancelled_at_the_last_moment', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const controller = new AbortController();
    // Continues before the other acquire, which has more to do after the same packet.
    const aborting = client.acquire(['a'], 5000).then(() => controller.abort());
    const settings = { signal: controller.signal };
    const rejected = assert.rejects(client.acquire(['b'], 5000, settings), { name: 'AbortError' });
    const [a, b] = [await daemon.next(), await daemon.next()];
    const token = 'b'.repeat(40);
    a.conn.write(`#${a.tag} OK ${TOKEN} 4900 1 -\n#${b.tag} OK ${token} 4900 1 -\n`);
    await Promise.all([aborting, rejected]);
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK b ${token}`);
    unlock.reply('OK');
  }),
);

// Another connection cannot end a HOLD for certain.
test('a_hold_that_is_granted_too_late_is_released_over_its_connection', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 60_000, { hold: true }); // keeps the connection open
    (await daemon.next()).reply(`OK ${'a'.repeat(40)} 59000 1 -`);
    await acquired;
    const controller = new AbortController();
    const settings = { wait: timeout, hold: true, signal: controller.signal };
    const rejected = assert.rejects(client.acquire(['b'], 5000, settings), { name: 'AbortError' });
    const request = await daemon.next();
    controller.abort();
    await rejected;
    request.reply(`OK ${TOKEN} 4900 1 -`);
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK b ${TOKEN}`);
    assert.equal(unlock.conn, request.conn);
    unlock.reply('OK');
  }),
);

// Only an UNLOCK that was sent can be the reason for GONE.
test('gone_to_the_first_unlock_that_is_carried_out_is_a_loss', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 60_000);
    const request = await daemon.next();
    request.reply(`OK ${TOKEN} 59000 1 -`);
    const lock = await acquired;
    const acquiredHold = client.acquire(['b'], 60_000, { hold: true });
    (await daemon.next()).reply(`OK ${OTHER_TOKEN} 59000 1 -`);
    const hold = await acquiredHold;
    daemon.refuses = 2;
    request.conn.destroy();
    await aborted(hold.signal); // the client has seen the end of the connection
    const released = assert.rejects(lock.release(), api.LostError);
    (await daemon.next()).reply('LIMIT operations');
    (await daemon.next()).reply('GONE');
    await released;
    assert.equal(daemon.refuses, 0);
  }),
);

test('a_reply_proves_no_more_than_the_ttl', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    for (const words of ['4900 99000', '99000 0']) {
      const acquired = client.acquire(['a'], 5000);
      (await daemon.next()).reply(`OK ${TOKEN} ${words} -`);
      const lock = await acquired;
      assert.ok(lock.remaining <= 5000, String(lock.remaining));
      const extended = lock.extend(6000);
      (await daemon.next()).reply(`OK ${TOKEN} ${words}`);
      await extended;
      assert.ok(lock.remaining <= 6000, String(lock.remaining));
    }
  }),
);

test('a_silent_daemon_is_left', { timeout }, async () => {
  const daemons = [await ScriptedDaemon.start(), await ScriptedDaemon.start()];
  const client = new Redlock(
    daemons.map(({ url }) => url),
    { timeout: 1200, retryDelay: 10 },
  );
  try {
    const first = client.acquire(['a'], 5000, { wait: timeout });
    await daemons[0].next();
    daemons[0].pongs = false;
    (await daemons[1].next()).reply(`OK ${TOKEN} 4900 1 -`);
    assert.equal((await first).value, TOKEN);
  } finally {
    const done = client.quit();
    for (const daemon of daemons) await daemon.end();
    await done;
  }
});

test('each_address_is_tried_once', { timeout }, async () => {
  const urls = ['unix:/missing/one', 'unix:/missing/two'];
  const client = new Redlock(urls, { retryCount: 0 });
  for (let i = 0; i < 2; i++)
    await assert.rejects(client.acquire(['a'], 5000), ({ message }) => {
      assert.deepEqual(message.match(/one|two/g), ['one', 'one', 'two', 'two']); // URL and path
      return true;
    });
  await client.quit();
});

test('a_peer_with_another_protocol_is_left', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    for (const reply of ['HTTP/1.1 400 Bad Request', '#99 OK', 'x'.repeat(5000)]) {
      const settings = { retryCount: 0, retryDelay: 1 };
      const rejected = assert.rejects(client.acquire(['a'], 5000, settings), api.UnavailableError);
      for (let i = 0; i < 2; i++) (await daemon.next()).conn.write(`${reply}\n`);
      await rejected;
    }
  }),
);

// The end of the connection would release the HOLD at once, while its work still stops.
test('a_hold_of_a_peer_with_another_protocol_keeps_its_connection', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 60_000, { hold: true });
    const request = await daemon.next();
    request.reply(`OK ${TOKEN} 59000 1 -`);
    const lock = await acquired;
    push(request, 'HTTP/1.1 400 Bad Request');
    await aborted(lock.signal);
    assert.equal(lock.signal.error.reason, 'closed');
    assert.ok(lock.remaining > 0);
    const other = client.acquire(['b'], 5000); // over another connection
    (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
    await other;
    assert.ok(daemon.conns.has(request.conn));
    await assert.rejects(lock.release(), { reason: 'closed' });
    for (;;) {
      const unlock = await daemon.next();
      assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
      if (unlock.conn === request.conn) continue; // nobody hears the reply
      unlock.reply('OK');
      break;
    }
    await until(() => !daemon.conns.has(request.conn));
  }),
);

// redlockd releases a HOLD at once when it reads QUIT, or the end of the connection.
test('a_hold_that_may_have_ended_has_no_time_left', { timeout }, async () => {
  for (const [settings, end, isOver] of [
    [{ hold: true }, 'quit', true],
    [{ linger: true }, 'quit', true],
    [{ hold: true }, 'close', true],
    [{ linger: true }, 'close', false],
  ])
    await withDaemon(async (daemon, client) => {
      const acquired = client.acquire(['a'], 60_000, settings);
      const { conn, reply } = await daemon.next();
      reply(`OK ${TOKEN} 59000 1 -`);
      const lock = await acquired;
      const { signal } = lock;
      if (end === 'quit') client.quit();
      else conn.destroy();
      await aborted(signal);
      if (end === 'quit') assert.equal(daemon.conns.size, 1, 'before redlockd reads QUIT');
      assert.equal(signal.error?.reason, 'closed');
      assert.equal(lock.remaining === 0, isOver);
      assert.equal(lock.expiration === 0, isOver);
    });
});

test('a_lock_can_be_released_after_quit', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 5000);
    (await daemon.next()).reply(`OK ${TOKEN} 4900 1 -`);
    const lock = await acquired;
    await client.quit();
    assert.equal(lock.signal.aborted, false);
    await assert.rejects(lock.extend(5000), api.UnavailableError);
    const released = lock.release();
    (await daemon.next()).reply('OK');
    await released;
    await until(() => daemon.conns.size === 0);
  }),
);

test('a_lock_does_not_keep_the_process_alive_after_quit', { timeout }, () =>
  withDaemon(async (daemon) => {
    const module = new URL('../index.js', import.meta.url);
    const text = `
      const { default: Redlock } = await import('${module}');
      const client = new Redlock('${daemon.url}');
      (await client.acquire(['a'], 50_000)).signal;
      await client.quit();`;
    const startedAt = performance.now();
    const child = spawn(process.execPath, ['--input-type=module', '--eval', text]);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    (await daemon.next()).reply(`OK ${TOKEN} 49000 1 -`);
    assert.equal(await ended, 0);
    assert.ok(performance.now() - startedAt < 40_000);
  }),
);

test('more_requests_than_a_connection_may_have', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const locks = Array.from({ length: 2000 }, (_, index) => client.acquire([`a${index}`], 5000));
    const requests = [];
    while (requests.length < 2000) requests.push(await daemon.next());
    assert.ok(daemon.accepted > 1 && daemon.accepted <= 4, String(daemon.accepted));
    for (const conn of new Set(requests.map((request) => request.conn)))
      assert.ok(requests.filter((request) => request.conn === conn).length <= 1024);
    for (const request of requests) request.reply(`OK ${TOKEN} 4900 1 -`);
    await Promise.all(locks);
    await until(() => daemon.conns.size <= 1); // those that are not needed any more end
  }),
);

test('quit_ends_a_connection_that_is_being_opened', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const { greet } = daemon;
    let greetLate;
    daemon.greet = (reply) => {
      if (daemon.accepted === 1) greet(reply);
      else greetLate = () => greet(reply);
    };
    const names = Array.from({ length: 1001 }, (_, i) => `a${i}`); // too many for one connection
    const acquired = names.map((name) =>
      assert.rejects(client.acquire([name], 5000), { message: 'the client was closed' }),
    );
    const closed = client.quit();
    await until(() => greetLate && daemon.conns.size === 1);
    await new Promise((resolve) => setTimeout(resolve, 100)); // the client sees that as well
    greetLate();
    await Promise.all([closed, ...acquired]);
  }),
);

test('many_waits_may_share_a_signal', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const warnings = [];
    const onWarning = (warning) => warnings.push(warning);
    process.on('warning', onWarning);
    const controller = new AbortController();
    const settings = { signal: controller.signal };
    const locks = Array.from({ length: 50 }, (_, index) =>
      assert.rejects(client.acquire([`a${index}`], 5000, settings), { name: 'AbortError' }),
    );
    for (let i = 0; i < 50; i++) await daemon.next();
    controller.abort();
    await Promise.all(locks);
    process.off('warning', onWarning);
    assert.deepEqual(warnings, []);
  }),
);

test('requests_are_repeated_after_the_users_have_changed', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 20_000);
    (await daemon.next()).reply(`OK ${TOKEN} 19000 1 -`);
    const released = (await acquired).release();
    const first = await daemon.next();
    first.conn.end('DENIED the users of this daemon have changed\n');
    const second = await daemon.next();
    assert.equal(second.text, first.text);
    second.reply('OK');
    await released;
  }),
);

test('automatic_extension_outlives_a_change_of_the_secret', { timeout }, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'redlockd-node.'));
  const secretFile = path.join(folder, 'secret');
  fs.writeFileSync(secretFile, 'old');
  const daemon = await ScriptedDaemon.start();
  const client = new Redlock(daemon.url, { secretFile });
  // Is extended at once. The extension is given up when 20 s are left.
  const settings = { automaticExtensionThreshold: 60_000 };
  const done = client.using(['a'], 60_000, settings, async (signal, lock) => {
    fs.rmSync(secretFile);
    for (const conn of daemon.conns) conn.destroy();
    await until(() => lock.remaining < 53_500);
    fs.writeFileSync(secretFile, 'new');
    const extend = await daemon.next();
    extend.reply(`OK ${TOKEN} 59000 0`);
    await until(() => lock.remaining > 55_000);
    assert.ok(!signal.aborted);
    daemon.next().then((unlock) => unlock.reply('OK'));
  });
  (await daemon.next()).reply(`OK ${TOKEN} 54000 0 -`);
  await done;
  await client.quit();
  await daemon.end();
  fs.rmSync(folder, { recursive: true });
});

test('a_lock_of_another_process', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const tokens = ['a'.repeat(40), 'b'.repeat(40)];
    for (const [names, value] of [
      [['a'], 'not a token'],
      [['a'], `${TOKEN}\nQUIT`],
      [['a\nQUIT'], TOKEN],
      [['a', 'b'], TOKEN],
    ])
      assert.throws(() => new api.Lock(client, names, value, [], Date.now() + 1000), TypeError);
    for (const expiration of [undefined, NaN, new Date(NaN), Infinity, 'tomorrow'])
      assert.throws(() => new api.Lock(client, ['a'], TOKEN, [], expiration), TypeError);
    const lock = new api.Lock(client, ['a', 'b'], tokens.join(','), [], Date.now() + 60_000);
    assert.ok(lock.remaining > 0 && lock.remaining <= 60_000);
    const released = lock.release();
    for (const [index, name] of ['a', 'b'].entries()) {
      const request = await daemon.next();
      assert.equal(request.text, `UNLOCK ${name} ${tokens[index]}`);
      request.reply('OK');
    }
    assert.equal((await (await released).attempts[0]).votesFor.size, 1);
    // The clocks of the processes differ, so only the daemon knows whether this one is over.
    const old = new api.Lock(client, ['a'], TOKEN, [], Date.now() - 1000).release();
    (await daemon.next()).reply('OK');
    await old;
  }),
);

test('an_extension_after_the_deadline_is_no_extension', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 20_000);
    (await daemon.next()).reply(`OK ${TOKEN} 1000 1 -`);
    const lock = await acquired;
    const extended = assert.rejects(lock.extend(20_000), api.LostError);
    const request = await daemon.next();
    await sleep(1); // goes on in a timer: the client reads the reply before its own timers run
    while (lock.remaining > 0);
    request.reply(`OK ${TOKEN} 19900 1`);
    await extended;
    assert.equal(lock.remaining, 0);
    assert.ok(lock.signal.aborted);
  }),
);

// The timer of the deadline cannot run meanwhile.
test('work_without_a_pause_finds_out_by_itself', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    for (let i = 0; i < 2; i++) {
      const acquired = client.acquire([`a${i}`], 5000);
      (await daemon.next()).reply(`OK ${TOKEN} 1000 1 -`);
      const { signal, remaining } = await acquired;
      const end = performance.now() + remaining;
      signal.throwIfAborted();
      while (performance.now() <= end);
      if (i === 0) assert.ok(signal.aborted);
      assert.throws(() => signal.throwIfAborted(), api.LostError);
    }
  }),
);

// The drift of the clocks takes more than 100 ms from a long lock.
test('a_great_threshold_does_not_extend_without_a_pause', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const settings = { automaticExtensionThreshold: 30_000 };
    let stop;
    const done = client.using(['a'], 30_000, settings, () => new Promise((end) => (stop = end)));
    (await daemon.next()).reply(`OK ${TOKEN} 29689 0 -`);
    const begin = performance.now();
    const extend = await daemon.next();
    assert.equal(extend.text, `EXTEND a ${TOKEN} 30000`);
    assert.ok(performance.now() - begin > 1000, String(performance.now() - begin));
    extend.reply(`OK ${TOKEN} 29689 0`);
    stop();
    (await daemon.next()).reply('OK');
    await done;
  }),
);

test('no_extension_follows_an_unlock', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = client.acquire(['a'], 6000);
    (await daemon.next()).reply(`OK ${TOKEN} 5900 1 -`);
    const lock = await acquired;
    const extended = assert.rejects(lock.extend(6000), api.ExecutionError);
    (await daemon.next()).reply('NOQUORUM 1/3 need=2 m0:timeout'); // it would be repeated
    const released = lock.release();
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
    await extended;
    unlock.reply('OK');
    await released;
    assert.equal(daemon.untaken, 0);
  }),
);

test('the_deadline_of_another_process_is_replaced_by_a_proven_one', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const lock = new api.Lock(client, ['a'], TOKEN, [], Date.now() + 3_600_000);
    const extended = lock.extend(5000);
    (await daemon.next()).reply(`OK ${TOKEN} 4900 1`);
    assert.equal(await extended, lock);
    assert.ok(lock.remaining > 0 && lock.remaining <= 4901);
  }),
);

test('all_or_none_when_an_earlier_lock_is_lost', { timeout }, () =>
  withDaemon(async (daemon, client) => {
    const acquired = assert.rejects(
      client.acquire(['a', 'b'], 3000, { wait: timeout }),
      (error) => error instanceof api.LostError && error.reason === 'gone',
    );
    (await daemon.next()).reply(`OK ${TOKEN} 2990 1 -`);
    assert.match((await daemon.next()).text, /^LOCK b /);
    const extend = await daemon.next(); // the first lock is extended while the second one waits
    assert.equal(extend.text, `EXTEND a ${TOKEN} 3000`);
    extend.reply('GONE');
    const unlock = await daemon.next();
    assert.equal(unlock.text, `UNLOCK a ${TOKEN}`);
    unlock.reply('GONE');
    await acquired;
  }),
);

test('every_scenario_has_a_test', () => {
  const read = (path) => fs.readFileSync(new URL(path, import.meta.url), 'utf8');
  const rows = read('../../scenarios.md').match(/^\| `.*?(?= \|)/gm);
  const tests = (read('scenarios.test.js') + read('secrets.test.js'))
    .match(/^(test|scripted)\('\w+'/gm)
    .map((line) => line.split("'")[1]);
  const names = rows
    .filter((row) => !/\((Python|Go)\)/.test(row))
    .flatMap((row) => row.match(/(?<=`)\w+(?=`)/g));
  assert.ok(names.length > 40);
  assert.deepEqual(
    names.filter((name) => !tests.includes(name)),
    [],
  );
});

test('version_and_licence_are_those_of_redlockd', () => {
  const read = (path) => fs.readFileSync(new URL(path, import.meta.url), 'utf8');
  const [, version] = /^VERSION := (\S+)$/m.exec(read('../../../Makefile'));
  assert.equal(JSON.parse(read('../package.json')).version, version);
  assert.equal(read('../LICENSE'), read('../../../LICENSE'));
});
