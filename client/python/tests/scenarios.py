"""The scenarios of client/scenarios.md, for both clients: the test modules give the class Client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import unittest
from unittest import mock

import support
from redlockd import (
    Denied,
    Lost,
    NoQuorum,
    NotAcquired,
    RedlockError,
    Rejected,
    Unavailable,
    _clock,
)
from redlockd._lock import LockBase
from support import DEADLINE_S, Cluster, ScriptedDaemon, new_name, until, within

# Longer than any limit of time of these tests: such a lock is not free because its TTL is over.
LONG = 300
SHORT = 2  # a TTL whose end the test waits for
# On a busy machine, a master can take long to answer.
CONFIG = {"locks": {"max_ttl": "10m"}}
TOKEN = "0123456789abcdef0123456789abcdef01234567"


class Base(unittest.IsolatedAsyncioTestCase):
    Client: type
    cluster: Cluster
    options: dict = {}

    def setUp(self):
        # The slow callbacks of a busy machine are no news, nor are the masters that are stopped.
        for logger in ("asyncio", "redlockd"):
            logging.getLogger(logger).setLevel(logging.CRITICAL)

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(**cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def client(self, *args, **kwargs):
        client = self.Client(*(args or (self.cluster.address(),)), **kwargs)
        self.addAsyncCleanup(client.close)
        return client

    async def wait_waiters(self, name, count):
        await until(f"{count} waiters", lambda: self.cluster.waiters(name) == count)

    async def assert_lost(self, lock, reason=None):
        await lock.wait_lost()
        with self.assertRaises(Lost) as caught:
            lock.check()
        if reason is not None:
            self.assertEqual(caught.exception.reason, reason)
        self.assertFalse(lock.held)

    async def wait_granting(self, client):
        """Waits until locks are granted again."""

        async def grants():
            try:
                return await client.lock(new_name("granting"), ttl=1, wait=1).acquire()
            except RedlockError:
                return None

        await until("a lock to be granted", grants)

    async def wait_extended(self, lock):
        last = lock.check()

        def rises():
            nonlocal last
            before, last = last, lock.check()
            return last > before

        await until("an extension", rises)


class Acquiring:
    """Acquire and release."""

    async def test_lock_and_unlock(self):
        name = new_name("lock")
        lock = await self.client().lock(name, ttl=20).acquire()
        self.assertEqual(self.cluster.status(name), "held")
        self.assertRegex(lock.token, r"\A[0-9a-f]{40}\Z")
        self.assertEqual(lock.resource, name)
        self.assertTrue(0 < lock.remaining() <= 20)
        self.assertTrue(lock.held)
        self.assertNotIn(lock.token, repr(lock.lock) + repr(lock.grants))
        self.assertTrue(await lock.unlock())
        self.assertEqual(self.cluster.status(name), "free")
        self.assertEqual(lock.remaining(), 0)
        with self.assertRaises(Lost) as caught:
            lock.check()
        self.assertEqual(caught.exception.reason, "released")
        self.assertFalse(await lock.unlock())

    async def test_contention(self):
        name, client, inside = new_name("contention"), self.client(), []

        async def work(number):
            lock = await client.lock(name, ttl=20, wait=60).acquire()
            inside.append(number)
            self.assertEqual(len(inside), 1)
            await asyncio.sleep(0)
            self.assertEqual(inside.pop(), number)
            self.assertTrue(await lock.unlock())
            return number

        done = await within(asyncio.gather(*(work(number) for number in range(16))))
        self.assertEqual(done, list(range(16)))

    async def test_try_lock(self):
        name, client = new_name("try"), self.client()
        lock = await client.lock(name, ttl=20).acquire()
        self.assertIsNone(await client.try_lock(name, ttl=20))
        with self.assertRaises(NotAcquired) as caught:
            await client.lock(name, ttl=20).acquire()
        self.assertTrue(0 < caught.exception.hint <= 20)
        await lock.unlock()
        other = await client.try_lock(name, ttl=20)
        self.assertTrue(other.held)
        await other.unlock()

    async def test_with_after_try_lock(self):
        """The statement takes the acquired lock, once."""
        name, client = new_name("try"), self.client()
        lock = await client.try_lock(name, ttl=20)
        async with lock.entered():
            self.assertTrue(lock.held)
            with self.assertRaises(RuntimeError):
                async with lock.entered():
                    pass
            self.assertEqual(self.cluster.status(name), "held")
        self.assertEqual(self.cluster.status(name), "free")
        async with lock.entered():
            self.assertTrue(lock.held)  # acquired again
        self.assertEqual(self.cluster.status(name), "free")

    async def test_wait(self):
        name, client = new_name("wait"), self.client()
        lock = await client.lock(name, ttl=30).acquire()
        waiting = asyncio.create_task(client.lock(name, ttl=30, wait=60).acquire())
        await self.wait_waiters(name, 1)
        await lock.unlock()
        self.assertTrue((await within(waiting)).held)

    async def test_wait_times_out(self):
        name, client = new_name("timeout"), self.client()
        await client.lock(name, ttl=30).acquire()
        with self.assertRaises(NotAcquired):
            await client.lock(name, ttl=30, wait=0.3).acquire()
        await self.wait_waiters(name, 0)

    async def test_cancel_while_waiting(self):
        for other_waits in (False, True):
            name, client = new_name("cancel"), self.client()
            lock = await client.lock(name, ttl=30).acquire()
            kept = await client.lock(new_name("kept"), ttl=30, hold=other_waits).acquire()
            waiting = asyncio.create_task(client.lock(name, ttl=LONG, wait=LONG).acquire())
            await self.wait_waiters(name, 1)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await within(waiting)
            await lock.unlock()
            await self.client().lock(name, ttl=30, wait=20).acquire()
            self.assertTrue(kept.held)
            self.assertTrue(await kept.unlock())

    async def test_late_on_arrival(self):
        for extended, ends in (("OK", "held"), ("GONE", "released"), ("OK late", "released")):

            def script(words, extended=extended):
                if words[0] == "LOCK":
                    return f"OK {TOKEN} 0 0 -"
                if words[0] == "EXTEND":
                    return {
                        "OK": f"OK {TOKEN} 20000 0",
                        "OK late": f"OK {TOKEN} 0 0",
                        "GONE": "GONE",
                    }[extended]
                return "OK"

            daemon = ScriptedDaemon(script)
            self.addCleanup(daemon.close)
            lock = self.client(daemon.address).lock("late", ttl=30)
            if ends == "held":
                await lock.acquire()
                self.assertTrue(10 < lock.check() <= 20)
            else:
                with self.assertRaises(NotAcquired):
                    await lock.acquire()
                await until("UNLOCK", lambda: ["UNLOCK", "late", TOKEN] in daemon.requests)
            verbs = [words[0] for words in daemon.requests]
            self.assertEqual(verbs[:2], ["LOCK", "EXTEND"])
            self.assertEqual(verbs.count("EXTEND"), 1)

    async def test_expired_before_it_is_taken(self):
        """The process is stopped between the grant and the end of acquire()."""
        name, client, set_leases = new_name("expired"), self.client(), LockBase._set_leases

        def set_late(lock, leases):
            set_leases(lock, leases)
            for lease in leases:
                lease.deadline_ns = 1

        with mock.patch.object(LockBase, "_set_leases", set_late):
            with self.assertRaises(NotAcquired):
                await client.lock(name, ttl=LONG).acquire()
        await until("free", lambda: self.cluster.status(name) == "free")

    async def test_late_reply_is_released(self):
        arrived, release = asyncio.Event(), support.threading.Event()
        loop = asyncio.get_running_loop()

        def script(words):
            if words[0] == "LOCK" and words[1] == "given-up":
                loop.call_soon_threadsafe(arrived.set)
                release.wait(support.DEADLINE_S)
                return f"OK {TOKEN} 20000 0 -"
            return "OK" if words[0] == "UNLOCK" else f"OK {TOKEN[::-1]} 20000 0 -"

        daemon = ScriptedDaemon(script)
        self.addCleanup(daemon.close)
        client = self.client(daemon.address)
        await client.lock("hold", ttl=20, hold=True).acquire()  # so the connection stays
        waiting = asyncio.create_task(client.lock("given-up", ttl=20, wait=60).acquire())
        await within(arrived.wait())
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await within(waiting)
        release.set()
        await until("UNLOCK", lambda: ["UNLOCK", "given-up", TOKEN] in daemon.requests)

    async def test_many_locks(self):
        label = new_name("many")
        client = self.client(name=label)
        names = [new_name("many") for _ in range(1000)]
        locks = await within(asyncio.gather(*(client.lock(n, ttl=50).acquire() for n in names)))
        self.assertEqual(len({lock.token for lock in locks}), 1000)
        rows = [row for row in self.cluster.rows("clients") if row["name"] == label]
        self.assertEqual(len(rows), 1)
        self.assertEqual(await within(asyncio.gather(*(k.unlock() for k in locks))), [True] * 1000)
        await until("no locks", lambda: not self.cluster.rows("locks", names[-1]))

    async def test_wrong_arguments(self):
        client = self.client("tcp://127.0.0.1:1")
        with self.assertRaisesRegex(TypeError, "a resource name is a str"):
            client.lock(b"a", ttl=1)
        with self.assertRaisesRegex(ValueError, "must not be empty"):
            client.lock("", ttl=1)
        for name in ("a b", "a\n", "a\x7f", "x" * 257, "ä" * 129):
            with self.assertRaises(ValueError):
                client.lock(name, ttl=1)
        for wrong in ({"ttl": -1}, {"ttl": 0}, {"ttl": float("nan")}, {"ttl": 1, "slots": 0},
                      {"ttl": 1, "slots": 1001}, {"ttl": 1, "wait": -1},
                      {"ttl": 1, "linger": True}):  # fmt: skip
            with self.assertRaises(ValueError):
                client.lock("a", **wrong)
        with self.assertRaises(ValueError):
            client.lock([], ttl=1)
        with self.assertRaises(ValueError):
            client.lock("x" * 255, ttl=1, slots=2)
        for address in ("", "127.0.0.1", "http://a:1", "tcp://a", "tcp://a:70000", "tcp://a:1\nb",
                        "redis://:password@a:1"):  # fmt: skip
            with self.assertRaises(ValueError) as caught:
                self.Client(address)
            self.assertNotIn("password", str(caught.exception))
        with self.assertRaises(ValueError) as caught:
            await self.client().lock(new_name("ttl"), ttl=1e6).acquire()
        self.assertEqual(caught.exception.code, "ttl-range")

    async def test_fencing(self):
        name, client, fences = new_name("fence"), self.client(), []
        for _ in range(2):
            lock = await client.lock(name, ttl=20, fence=True).acquire()
            await lock.unlock()
            fences.append(lock.fence)  # it can be read, and logged, after the release as well
        self.assertLess(fences[0], fences[1])
        lock = await client.lock(name, ttl=20).acquire()
        self.assertIsNone(lock.fence)
        await lock.unlock()

    async def test_slots(self):
        name, client = new_name("slots"), self.client()
        first = await client.lock(name, ttl=30, slots=2).acquire()
        second = await client.lock(name, ttl=30, slots=2).acquire()
        self.assertEqual({first.resource, second.resource}, {f"{name}#1", f"{name}#2"})
        with self.assertRaises(NotAcquired):
            await client.lock(name, ttl=30, slots=2).acquire()
        await second.extend(40)
        freed = second.resource
        self.assertTrue(await second.unlock())
        third = await client.lock(name, ttl=30, slots=2).acquire()
        self.assertEqual(third.resource, freed)

    async def test_several_resources(self):
        prefix, client = new_name("several"), self.client()
        a, b, c = prefix + "a", prefix + "b", prefix + "ä"
        lock = await client.lock([b, c, a, b], ttl=20, fence=True).acquire()
        self.assertEqual([grant.resource for grant in lock.grants], [a, b, c])
        self.assertTrue(0 < lock.check() <= 20)
        with self.assertRaises(ValueError):
            lock.fence
        self.assertTrue(await lock.unlock())
        other = await client.lock(b, ttl=20).acquire()
        with self.assertRaises(NotAcquired):
            await client.lock([a, b, c], ttl=LONG).acquire()
        for name in (a, c):
            await until(f"{name} to be free", lambda name=name: self.cluster.status(name) == "free")
        await other.unlock()


class Extending:
    """Extensions."""

    async def test_extend(self):
        name = new_name("extend")
        lock = await self.client().lock(name, ttl=10).acquire()
        await lock.extend(30)
        self.assertGreater(lock.remaining(), 15)
        await lock.extend(1)  # never shortens
        self.assertGreater(lock.remaining(), 15)
        self.assertEqual(self.cluster.status(name), "held")

    async def test_extend_after_unlock(self):
        name = new_name("extend")
        lock = await self.client().lock(name, ttl=20).acquire()
        self.assertEqual(self.cluster.redlock("unlock", name, lock.token)["exit"], 0)
        with self.assertRaises(Lost) as caught:
            await lock.extend()
        self.assertEqual(caught.exception.reason, "gone")
        await self.assert_lost(lock)
        self.assertEqual(lock.remaining(), 0)
        self.assertFalse(await lock.unlock())

    async def assert_held_beyond_its_ttl(self, name, **kwargs):
        """Acquires the lock, and checks for longer than its TTL that only this client has it."""
        ttl = 7  # long enough for a busy machine
        client = self.client()
        lock = await client.lock(name, ttl=ttl, **kwargs).acquire()
        end_ns = _clock.now_ns() + int((ttl + 0.5) * 1e9)

        def over():
            lock.check()
            return _clock.now_ns() > end_ns

        await until("time to pass", over)
        self.assertIsNone(await self.client().try_lock(name, ttl=3))
        return client, lock

    async def test_automatic_extension(self):
        _, lock = await self.assert_held_beyond_its_ttl(new_name("automatic"), auto_extend=True)
        self.assertTrue(await lock.unlock())

    async def test_hold(self):
        name = new_name("hold")
        client, lock = await self.assert_held_beyond_its_ttl(name, hold=True)
        await client.close()
        self.assertFalse(lock.held)
        await until("free", lambda: self.cluster.status(name) == "free")

    async def test_hold_ends_with_the_client(self):
        name, client = new_name("hold"), self.Client(self.cluster.address(kind="tcp"))
        lock = await client.lock(name + "-long", ttl=LONG, hold=True).acquire()
        await client.close()
        self.assertFalse(lock.held)
        await until("free", lambda: self.cluster.status(name + "-long") == "free")

    async def test_deadline_passes(self):
        lock = await self.client().lock(new_name("deadline"), ttl=SHORT, wait=60).acquire()
        await self.assert_lost(lock, "expired")
        self.assertEqual(lock.remaining(), 0)


class Losing:
    """Losses."""

    async def test_break_hold(self):
        name = new_name("break")
        lock = await self.client().lock(name, ttl=LONG, hold=True).acquire()
        self.assertEqual(self.cluster.redlock("break", name)["exit"], 0)
        await self.assert_lost(lock, "gone")
        self.assertEqual(lock.remaining(), 0)

    async def test_break_automatic(self):
        name = new_name("break")
        lock = await self.client().lock(name, ttl=3, auto_extend=True).acquire()
        self.assertEqual(self.cluster.redlock("break", name)["exit"], 0)
        await self.assert_lost(lock, "gone")

    async def cut(self, seconds, **kwargs):
        """Cuts the masters. Returns the lock, and the time in which the work has to stop."""
        client = self.client()
        lock = await client.lock(new_name("cut"), ttl=seconds, **kwargs).acquire()
        self.cluster.command("cut-masters")
        try:
            await lock.wait_lost()
            return lock, lock.remaining()
        finally:
            self.cluster.command("heal-masters")
            await self.wait_granting(client)

    async def test_masters_cut_automatic(self):
        lock, remaining = await self.cut(10, auto_extend=True)
        self.assertGreater(remaining, 0)
        await self.assert_lost(lock)

    async def test_masters_cut_hold(self):
        lock, remaining = await self.cut(10, hold=True)
        self.assertGreater(remaining, 0)
        await self.assert_lost(lock)

    async def test_lost_in_time(self):
        lock, remaining = await self.cut(6, hold=True)
        with self.assertRaises(Lost) as caught:
            lock.check()
        # The daemon tells of the loss, or the client gives up by itself a moment before.
        reasons = ("noquorum", "late", "overdue", "unextended")
        self.assertIn(caught.exception.reason, reasons)
        self.assertGreater(remaining, 0)

    async def test_daemon_paused(self):
        client = self.client()
        lock = await client.lock(new_name("paused"), ttl=3, hold=True).acquire()
        self.cluster.command("pause-daemon 0")
        try:
            await self.assert_lost(lock)
        finally:
            self.cluster.command("continue-daemon 0")
            await self.wait_granting(client)

    async def restart(self):
        self.cluster.command("kill-daemon 0")
        await asyncio.get_running_loop().run_in_executor(
            None, self.cluster.command, "start-daemon 0"
        )

    async def test_daemon_killed_hold(self):
        for kind in ("tcp", "unix"):
            name, client = new_name("killed"), self.client(self.cluster.address(kind=kind))
            lock = await client.lock(name, ttl=3, hold=True).acquire()
            await self.restart()
            await self.assert_lost(lock, "closed")
            self.assertEqual(lock.remaining(), 0)
            again = await within(client.lock(name, ttl=3, wait=60).acquire())
            self.assertTrue(await again.unlock())

    async def test_daemon_killed_automatic(self):
        lock = await self.client().lock(new_name("killed"), ttl=9, auto_extend=True).acquire()
        token = lock.token
        await self.restart()
        await self.wait_extended(lock)
        self.assertEqual(lock.token, token)
        self.assertTrue(await lock.unlock())

    async def test_client_suspended(self):
        name = new_name("suspended")
        child = await asyncio.create_subprocess_exec(
            sys.executable, os.path.join(support.HERE, "child.py"), "suspended",
            self.cluster.address(), name, self.Client.__name__,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.assertEqual(await within(child.stdout.readline()), b"held\n")
        child.send_signal(signal.SIGSTOP)
        other = await within(self.client().lock(name, ttl=30, wait=60).acquire())
        granted_ns = _clock.now_ns()
        child.send_signal(signal.SIGCONT)
        out, _ = await within(child.communicate(b"report\n"))
        report = json.loads(out)
        self.assertLess(report["last_held_ns"], granted_ns)
        self.assertTrue(report["lost"], report)
        self.assertTrue(other.held)


class Connecting:
    """Connections."""

    async def lock_through(self, kind):
        client = self.client(self.cluster.address(kind=kind))
        lock = await client.lock(new_name(kind), ttl=20).acquire()
        self.assertTrue(await lock.unlock())

    async def test_tcp(self):
        await self.lock_through("tcp")

    async def test_unix(self):
        await self.lock_through("unix")

    async def test_name(self):
        label = new_name("label")
        await self.client(name=label).lock(new_name("name"), ttl=20).acquire()
        self.assertIn(label, [row["name"] for row in self.cluster.rows("clients")])

    async def test_no_daemon(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
            for wait in (0, 60):
                with self.assertRaises(Unavailable) as caught:
                    await within(self.client(address).lock("a", ttl=20, wait=wait).acquire())
                self.assertIn(address, str(caught.exception))
            with self.assertRaises(Unavailable):
                await within(self.client("unix:/nonexistent/socket").lock("a", ttl=20).acquire())

    async def test_daemon_away(self):
        def script(words):
            if len(daemon.requests) > 1:
                return f"OK {TOKEN} 29000 0 -"
            daemon.banner = b"LIMIT clients\n"
            return ScriptedDaemon.CLOSE

        timeout = 2
        daemon = ScriptedDaemon(script)
        self.addCleanup(daemon.close)
        client = self.client(daemon.address, timeout=timeout)
        waiting = asyncio.create_task(client.lock("a", ttl=30, wait=LONG).acquire())
        await until("a LOCK", lambda: daemon.banner)
        await asyncio.wait([waiting], timeout=3 * timeout)
        daemon.banner = b""
        self.assertTrue((await within(waiting)).held)

    def both(self):
        return self.client([self.cluster.address(0), self.cluster.address(1)])

    async def test_second_daemon(self):
        client = self.both()
        lock = await client.lock(new_name("second"), ttl=30).acquire()
        self.cluster.command("kill-daemon 0")
        try:
            other = await within(client.lock(new_name("second"), ttl=30).acquire())
            self.assertTrue(await other.unlock())
            self.assertTrue(await lock.unlock())
        finally:
            self.cluster.command("start-daemon 0")

    async def test_daemon_stops(self):
        name, client = new_name("stops"), self.both()
        lock = await client.lock(name, ttl=9, auto_extend=True).acquire()
        self.cluster.command("stop-daemon 0")
        try:
            await self.wait_extended(lock)
            self.assertTrue(await lock.unlock())
        finally:
            self.cluster.command("start-daemon 0")
        self.assertEqual(self.cluster.status(name), "free")

    async def test_silent_daemon(self):
        """The first daemon stops to answer: the lock is extended through the second one."""
        lock = await self.both().lock(new_name("silent"), ttl=9, auto_extend=True).acquire()
        self.cluster.command("pause-daemon 0")
        try:
            await self.wait_extended(lock)
            self.assertTrue(await lock.unlock())
        finally:
            self.cluster.command("continue-daemon 0")
            await self.wait_granting(self.client())

    async def test_waiter_moves(self):
        name, client = new_name("moves"), self.both()
        other = self.client(self.cluster.address(1))
        lock = await other.lock(name, ttl=50).acquire()
        waiting = asyncio.create_task(client.lock(name, ttl=20, wait=60).acquire())
        await self.wait_waiters(name, 1)
        self.cluster.command("kill-daemon 0")
        try:
            await lock.unlock()
            self.assertTrue((await within(waiting)).held)
        finally:
            self.cluster.command("start-daemon 0")

    async def test_unlock_again(self):
        seen = {"UNLOCK": 0, "EXTEND": 0}

        def script(words):
            if words[0] == "LOCK":
                return f"OK {TOKEN} 29000 0 -"
            seen[words[0]] += 1
            if seen[words[0]] == 1:
                return ScriptedDaemon.CLOSE
            return "OK" if words[0] == "UNLOCK" else f"OK {TOKEN} 39000 0"

        daemon = ScriptedDaemon(script)
        self.addCleanup(daemon.close)
        lock = await self.client(daemon.address).lock("again", ttl=30).acquire()
        await within(lock.extend(40))
        self.assertGreater(lock.check(), 30)
        self.assertTrue(await within(lock.unlock()))
        extend, unlock = ["EXTEND", "again", TOKEN, "40000"], ["UNLOCK", "again", TOKEN]
        self.assertEqual(daemon.requests[1:], [extend, extend, unlock, unlock])

    async def test_lost_lock_is_released_in_the_background(self):
        """The daemon ends the connection of a HOLD, and answers no UNLOCK."""
        for closes in (False, True):
            with self.subTest(closes=closes):

                def script(words):
                    if words[0] == "LOCK":
                        return f"OK {TOKEN} 60000 0 -"
                    return ScriptedDaemon.CLOSE if words[0] == "EXTEND" else None

                daemon = ScriptedDaemon(script)
                self.addCleanup(daemon.close)
                client = self.client(daemon.address, timeout=10 * DEADLINE_S)
                lock = await client.lock("a", ttl=60, hold=True).acquire()
                with self.assertRaises(Lost):
                    await within(lock.extend())
                self.assertFalse(await within(lock.unlock()))
                if closes:
                    await within(client.close())
                await until("UNLOCK", lambda: ["UNLOCK", "a", TOKEN] in daemon.requests)

    async def test_loss_says_why(self):
        held = "it was held for as long as the daemon allows (max_hold)"
        often = "it was extended as often as the daemon allows (max_extensions)"
        voted = "too few masters could vote"
        for reply, text in {
            "LOST limit": held,
            "LOST noquorum": voted,
            "LOST late": "the masters answered too late",
            "LOST gone": "the token does not hold it any more",
            "LOST overdue": "the daemon was stopped or too busy",
            "LOST shutdown": "the daemon is stopping",
            "LOST news": "news",
            "GONE": "the token does not hold it any more",
            "LIMIT hold": held,
            "LIMIT extensions": often,
            "LIMIT other": "not extended in time: a limit of the daemon is reached: other",
            "NOQUORUM 1/3 need=2 a:timeout": "not extended in time: a: " + voted + ": 1/3 need=2 "
            "a:timeout",
            "": "not extended in time: no daemon can be reached: {}: [Errno 2] No such file or "
            "directory",
        }.items():
            with self.subTest(reply):

                # With some replies it is lost when the validity is over, after an extension has
                # failed. The TTL is longer, so that no EXTEND is given up for its own time limit.
                at_once = reply == "GONE" or reply.startswith("LOST")
                validity_ms = 60000 if at_once else 5000

                def script(words):
                    if words[0] == "LOCK":
                        return f"OK {TOKEN} {validity_ms} 0 -"
                    if words[0] != "EXTEND":
                        return "OK"
                    if reply.startswith("LOST"):
                        return f"OK {TOKEN} {validity_ms} 0\n! LOST a {TOKEN} {reply.split()[1]}"
                    if reply == "":
                        daemon.close()
                        return ScriptedDaemon.CLOSE
                    return reply

                daemon = ScriptedDaemon(script)
                kind = {"hold" if reply.startswith("LOST") else "auto_extend": True}
                client = self.Client(daemon.address)
                lock = await client.lock("a", ttl=60, **kind).acquire()
                if at_once:
                    with contextlib.suppress(Lost):
                        await lock.extend()
                await lock.wait_lost()
                with self.assertRaises(Lost) as caught:
                    lock.check()
                text = "the lock a is lost: " + text.format(daemon.address)
                self.assertEqual(str(caught.exception), text)
                reason = reply.split()[1] if reply.startswith("LOST") else "unextended"
                self.assertEqual(caught.exception.reason, "gone" if reply == "GONE" else reason)
                await client.close()
                if reply != "":
                    daemon.close()

    async def test_ttl_too_long(self):
        client = self.client()
        with self.assertRaises(Rejected) as caught:
            await client.lock(new_name("long"), ttl=3600).acquire()
        self.assertEqual(caught.exception.code, "ttl-range")
        self.assertRegex(
            str(caught.exception),
            r"between \w+ and 10m \(ttl-range\); for work that takes longer, "
            r"let the lock be extended \(auto_extend\)$",
        )

    async def test_limit(self):
        extended = f"OK {TOKEN} 5900 0"
        replies = {
            "LOCK": ["LIMIT waiters", extended + " -"],
            "EXTEND": ["LIMIT operations", "LIMIT hold", extended],
            "UNLOCK": ["LIMIT operations", "OK"],
        }
        daemon = ScriptedDaemon(lambda words: replies[words[0]].pop(0))
        self.addCleanup(daemon.close)
        lock = self.client(daemon.address).lock("a", ttl=6, wait=LONG, auto_extend=True)
        with self.assertRaises(Unavailable) as caught:
            await within(lock.acquire())
        self.assertEqual(caught.exception.limit, "waiters")
        await within(lock.acquire())
        with self.assertRaises(Unavailable) as caught:
            await within(lock.extend())
        self.assertEqual(caught.exception.limit, "operations")
        await until("an extension", lambda: not replies["EXTEND"])
        lock.check()
        self.assertTrue(await within(lock.unlock()))
        self.assertEqual(replies["UNLOCK"], [])

    async def test_truncated_reply(self):
        daemon = ScriptedDaemon(lambda words: f"OK {TOKEN} 20000 0 -".encode())
        self.addCleanup(daemon.close)
        client = self.client(daemon.address, timeout=0.5)
        with self.assertRaises(Unavailable):
            await within(client.lock("truncated", ttl=30).acquire())

    async def test_garbled_reply(self):
        daemon = ScriptedDaemon(lambda words: "OK 123 20000 0 -")
        self.addCleanup(daemon.close)
        client = self.client(daemon.address, timeout=0.5)
        with self.assertRaises(Unavailable):
            await within(client.lock("garbled", ttl=30).acquire())

    async def test_closing_line(self):
        daemon = ScriptedDaemon(None, banner=b"LIMIT clients\n")
        self.addCleanup(daemon.close)
        for _ in range(20):
            with self.assertRaises(Unavailable) as caught:
                await within(self.client(daemon.address).lock("closing", ttl=30).acquire())
            self.assertIn("LIMIT clients", str(caught.exception))

    async def test_no_quorum(self):
        name, client = new_name("quorum"), self.client()
        await client.lock(name + "-first", ttl=20).acquire()
        self.cluster.command("cut-masters")
        try:
            with self.assertRaises(NoQuorum) as caught:
                await within(client.lock(name, ttl=20).acquire())
            self.assertTrue(set(caught.exception.reasons) <= {"m0", "m1", "m2"})
            self.assertGreaterEqual(len(caught.exception.reasons), 2)
        finally:
            self.cluster.command("heal-masters")
            await self.wait_granting(client)
        self.assertTrue((await client.lock(name, ttl=20, wait=60).acquire()).held)

    async def test_close_while_waiting(self):
        name, client = new_name("close"), self.Client(self.cluster.address())
        await self.client().lock(name, ttl=LONG).acquire()
        waiting = asyncio.create_task(client.lock(name, ttl=50, wait=LONG).acquire())
        await self.wait_waiters(name, 1)
        held = await client.lock(new_name("held"), ttl=50).acquire()
        await client.close()
        await self.assert_lost(held, "closed")
        with self.assertRaises(Unavailable):
            await within(waiting)
        await self.wait_waiters(name, 0)
        with self.assertRaises(Unavailable):
            await client.lock(name, ttl=50).acquire()


class Secured:
    """TLS and users."""

    options = {"daemons": 1, "masters": 3, "tls": True, "users": True, "config": CONFIG}

    def started(self, key):
        return self.cluster.started[key]

    async def test_tls(self):
        address, secret = self.cluster.address(kind="tls"), self.started("secret")
        client = self.client(address, secret=secret, ca_file=self.started("ca"))
        lock = await client.lock(new_name("tls"), ttl=20).acquire()
        self.assertTrue(await lock.unlock())
        with self.assertRaisesRegex(Unavailable, "certificate.*; set ca_file to the CA of the"):
            await self.client(address, secret=secret).lock(new_name("tls"), ttl=20).acquire()
        other = address.replace("localhost", "127.1")  # the certificate does not name it
        client = self.client(other, secret=secret, ca_file=self.started("ca"))
        with self.assertRaises(Unavailable) as caught:
            await client.lock(new_name("tls"), ttl=20).acquire()
        self.assertRegex(str(caught.exception), r"certificate.*127\.1")
        self.assertNotIn("ca_file", str(caught.exception))

    async def test_ca_file(self):
        address = self.cluster.address(kind="tls")
        with self.assertRaisesRegex(ValueError, "ca_file /nonexistent/ca: No such file"):
            self.client(address, ca_file="/nonexistent/ca")

    async def test_tls_many(self):
        address, secret = self.cluster.address(kind="tls"), self.started("secret")
        client = self.client(address, secret=secret, ca_file=self.started("ca"))
        names = [new_name("tls") for _ in range(300)]
        locks = await within(asyncio.gather(*(client.lock(n, ttl=50).acquire() for n in names)))
        self.assertEqual(await within(asyncio.gather(*(k.unlock() for k in locks))), [True] * 300)

    async def test_tls_hold_ends_cleanly(self):
        name = new_name("tls")
        address, secret = self.cluster.address(kind="tls"), self.started("secret")
        client = self.Client(address, secret=secret, ca_file=self.started("ca"))
        await client.lock(name, ttl=LONG, hold=True).acquire()
        self.assertEqual(self.cluster.status(name), "held")
        await client.close()
        await until("free", lambda: self.cluster.status(name) == "free")

    async def test_secret(self):
        for key in ("secret", "secret_file"):
            client = self.client(**{key: self.started(key)})
            lock = await client.lock(new_name("secret"), ttl=20).acquire()
            self.assertTrue(await lock.unlock())

    async def test_wrong_secret(self):
        wrong = "0123456789abcdef-wrong"
        for wait in (0, 60):
            with self.assertRaises(Denied) as caught:
                client = self.client(secret=wrong)
                await within(client.lock(new_name("denied"), ttl=20, wait=wait).acquire())
            self.assertNotIn(wrong, str(caught.exception))
        with self.assertRaisesRegex(Denied, "authenticate first.*; set secret or secret_file$"):
            await within(self.client().lock(new_name("denied"), ttl=20).acquire())
        with self.assertRaisesRegex(Denied, "the secret file cannot be used: .*/nonexistent"):
            client = self.client(secret_file="/nonexistent/secret")
            await within(client.lock(new_name("denied"), ttl=20, wait=LONG).acquire())
        with self.assertRaises(ValueError) as caught:
            self.Client(self.cluster.address(), secret="not a secret")
        self.assertNotIn("not a secret", str(caught.exception))
