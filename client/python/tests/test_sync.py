"""The scenarios with redlockd.Redlock, and what only it has."""

import asyncio
import errno
import gc
import os
import socket
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import scenarios
import support
from redlockd import Lock, Lost, NotAcquired, Redlock, Rejected, Unavailable
from support import SyncClient, new_name, redlockd, until


class Sync(
    scenarios.Acquiring,
    scenarios.Extending,
    scenarios.Connecting,
    scenarios.Base,
):
    Client = SyncClient
    options = {"daemons": 2, "masters": 3, "config": scenarios.CONFIG}

    async def test_with(self):
        name = new_name("with")
        with Redlock(self.cluster.address()).lock(name, ttl=30, wait=10) as lock:
            self.assertGreater(lock.check(), 0)
            self.assertEqual(self.cluster.status(name), "held")
        self.assertEqual(self.cluster.status(name), "free")

    async def test_with_raises_lost(self):
        client = Redlock(self.cluster.address())
        with self.assertRaises(Lost):
            with client.lock(new_name("with"), ttl=scenarios.SHORT, wait=60) as lock:
                self.assertTrue(lock.lost.wait(support.DEADLINE_S))
        with self.assertRaises(KeyError):  # not hidden by Lost
            with client.lock(new_name("with"), ttl=scenarios.SHORT, wait=60) as lock:
                self.assertTrue(lock.lost.wait(support.DEADLINE_S))
                raise KeyError
        client.close()

    async def test_cancel_from_another_thread(self):
        name = new_name("cancel")
        with Redlock(self.cluster.address()) as client:
            held = client.lock(name, ttl=30).acquire()
            waiting, errors = client.lock(name, ttl=30, wait=60), []

            def wait():
                try:
                    waiting.acquire()
                except NotAcquired as error:
                    errors.append(error)

            thread = threading.Thread(target=wait)
            thread.start()
            await self.wait_waiters(name, 1)
            waiting.cancel()
            thread.join(support.DEADLINE_S)
            self.assertEqual(len(errors), 1)
            held.unlock()
            self.assertTrue(waiting.acquire().held)

    async def test_with_raises_if_the_lock_had_ended_before(self):
        name = new_name("ended")
        with Redlock(self.cluster.address()) as client:
            with self.assertRaises(Lost) as caught:
                with client.lock(name, ttl=30):
                    self.assertEqual(self.cluster.redlock("break", name)["exit"], 0)
            self.assertEqual(caught.exception.reason, "gone")

    async def test_threads_share_a_client(self):
        name, inside, most = new_name("threads"), [], []
        with Redlock(self.cluster.address()) as client:

            def work():
                for _ in range(20):
                    with client.lock(name, ttl=30, wait=60):
                        inside.append(1)
                        most.append(len(inside))
                        inside.pop()

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(support.DEADLINE_S)
        self.assertEqual(most, [1] * 160)

    async def test_garbage_is_closed(self):
        """At once: it takes no collection, and no timer, which would be longer than this test."""
        held = Redlock(self.cluster.address()).lock(new_name("garbage"), ttl=30).acquire()

        def releases(client):
            with client.lock(new_name("garbage"), ttl=30, auto_extend=True):
                pass

        def extends(client):
            with client.lock(new_name("garbage"), ttl=30, hold=True) as lock:
                lock.extend()

        def loses(client):
            with self.assertRaises(Lost):
                with client.lock(new_name("garbage"), ttl=scenarios.SHORT, wait=60) as lock:
                    self.assertTrue(lock.lost.wait(support.DEADLINE_S))

        # Not with assertRaises(), which also clears what the error refers to.

        def fails(client):
            try:
                client.lock(held.resource, ttl=30).acquire()
            except NotAcquired:
                return
            self.fail("acquired")

        def fails_to_extend(client):
            with client.lock(new_name("garbage"), ttl=30) as lock:
                try:
                    lock.extend(1e6)
                except Rejected:
                    return
                self.fail("extended")

        gc.disable()
        self.addCleanup(gc.enable)
        for work in (releases, extends, loses, fails, fails_to_extend):
            with self.subTest(work.__name__):
                label = new_name("garbage")
                threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
                work(Redlock(self.cluster.address(), name=label, timeout=10 * support.DEADLINE_S))
                await until("the thread to end", lambda: threading.active_count() <= threads)
                await until("its files", lambda: len(os.listdir("/proc/self/fd")) <= files)
                names = [row["name"] for row in self.cluster.rows("clients")]
                self.assertNotIn(label, names)
        held.unlock()

    async def test_a_client_that_cannot_start_says_why(self):
        """Without descriptors, for example. It works once there are some."""
        full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        with Redlock(self.cluster.address()) as client:
            with unittest.mock.patch("selectors.DefaultSelector", side_effect=full):
                with self.assertRaisesRegex(Unavailable, "Too many open files"):
                    client.lock(new_name("start"), ttl=30).acquire()
            with client.lock(new_name("start"), ttl=30, wait=support.DEADLINE_S):
                pass

    async def test_a_client_whose_thread_has_failed_says_why(self):
        with unittest.mock.patch.object(threading, "excepthook", lambda failure: None):
            client = Redlock(self.cluster.address())
            with unittest.mock.patch.object(client._driver, "_loop", side_effect=KeyError("bug")):
                for _ in range(2):
                    with self.assertRaisesRegex(Unavailable, "bug") as caught:
                        client.lock(new_name("thread"), ttl=30).acquire()
                    self.assertIsInstance(caught.exception.__cause__, KeyError)

    async def test_a_failure_of_the_thread_ends_all_waits(self):
        """Also that of the request that it has failed with."""
        name = new_name("fails")
        held = Redlock(self.cluster.address()).lock(name, ttl=30).acquire()

        def fails(*_):
            raise KeyError("bug")

        for function in ("calls.Acquire.line", "engine.Engine.on_bytes"):
            with self.subTest(function), Redlock(self.cluster.address()) as client:
                errors = []

                def work(name, wait):
                    try:
                        with client.lock(name, ttl=30, wait=wait):
                            pass
                    except Unavailable as error:
                        errors.append(str(error))

                threads = [
                    threading.Thread(target=work, args=(name, 3600), daemon=True),
                    threading.Thread(target=work, args=(new_name("fails"), 0), daemon=True),
                ]
                threads[0].start()
                await self.wait_waiters(name, 1)
                with unittest.mock.patch.object(threading, "excepthook", lambda failure: None):
                    with unittest.mock.patch(f"redlockd._{function}", fails):
                        threads[1].start()
                        await until("the end", lambda: len(errors) == 2)
                        client._driver._thread.join()
                self.assertRegex(" ".join(errors), "bug.*bug")
        held.unlock()

    async def test_a_cancel_before_the_request(self):
        """By another thread, just before acquire() lets the client send it."""
        name = new_name("cancel")
        with Redlock(self.cluster.address()) as client:
            lock, driver = client.lock(name, ttl=30, auto_extend=True), client._driver
            real_call = driver.call

            def call(operation, result):
                driver.call = real_call
                canceller = threading.Thread(target=lock.cancel)
                canceller.start()
                canceller.join(support.DEADLINE_S)
                real_call(operation, result)

            driver.call = call
            with self.assertRaises(NotAcquired):
                lock.acquire()
            with client.lock(name, ttl=30):
                pass

    async def test_an_extend_while_another_thread_uses_the_lock(self):
        """Before and after extend() has checked it."""

        class Late(Lock):
            def check(self):
                if not self._leases:
                    self.acquire()
                return super().check()

        class Early(Lock):
            def check(self):
                super().check()
                self.unlock()

        with Redlock(self.cluster.address()) as client:
            options = client.lock(new_name("late"), ttl=30)._options
            lock = Late(client, options)
            lock.extend()
            self.assertTrue(lock.unlock())
            with self.assertRaises(Lost):
                Early(client, options).acquire().extend()

    async def test_the_reason_of_a_loss_that_another_thread_just_notes(self):
        class Noting(Lock):
            def _on_lost(self, lease):
                reasons.append(self._why_lost())
                super()._on_lost(lease)

        name, reasons = new_name("reason"), []
        with Redlock(self.cluster.address()) as client:
            lock = Noting(client, client.lock(name, ttl=30)._options).acquire()
            self.assertEqual(self.cluster.redlock("break", name)["exit"], 0)
            with self.assertRaises(Lost):
                lock.extend()
        self.assertEqual(reasons, ["gone"])

    async def test_a_signal_handler_may_use_a_client_that_starts(self):
        package, name = os.path.dirname(redlockd.__file__), new_name("handler")

        def handle(client):
            """Uses the client at this line that this thread runs, if there are so many."""

            def trace(frame, event, arg):
                nonlocal left
                if not frame.f_code.co_filename.startswith(package):
                    return None
                if event == "line":
                    left -= 1
                    if left == 0:
                        sys.settrace(None)
                        with client.lock(f"{name}{number}", ttl=30):
                            pass
                return trace

            left = number
            sys.settrace(trace)
            try:
                with client.lock(name, ttl=30):
                    pass
            finally:
                sys.settrace(None)
            return left <= 0

        def run():
            nonlocal number
            while True:
                with Redlock(self.cluster.address()) as client:
                    if not handle(client):
                        break
                number += 1
            ended.append(number)

        number, ended = 1, []
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        await until("the end", lambda: not thread.is_alive())
        self.assertEqual(len(ended), 1)  # without an error
        self.assertGreater(number, 30)

    async def test_the_judgement_of_the_caller_is_final(self):
        """check() finds the lock lost while the thread is about to extend it."""
        name = new_name("judged")
        client, real_now_ns = Redlock(self.cluster.address()), redlockd._clock.now_ns
        lock = client.lock(name, ttl=3, auto_extend=True).acquire()
        with unittest.mock.patch.object(redlockd._sync, "now_ns", lambda: real_now_ns() + 3 * 10**9):
            lock._expire()
        with self.assertRaises(Lost):
            lock.check()
        await until("free", lambda: self.cluster.status(name) == "free")
        client.close()

    async def test_a_closed_client_says_so_in_new_threads(self):
        """One of them can have the identifier that the thread of the client had."""
        with Redlock(self.cluster.address()) as client:
            client.lock(new_name("closed"), ttl=30).acquire()
        errors = []

        def work():
            try:
                client.lock(new_name("closed"), ttl=30).acquire()
            except Unavailable as error:
                errors.append(str(error))

        for _ in range(4):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(support.DEADLINE_S)
        self.assertEqual(errors, ["the client is closed"] * 4)

    async def test_close_releases_a_lock_that_its_thread_has_not_taken(self):
        """The thread of the client has ended before acquire() goes on."""
        name, granted, closed = new_name("taken"), threading.Event(), threading.Event()
        client, errors = Redlock(self.cluster.address()), []
        real_wait = redlockd._sync._Acquired.wait

        def wait(result):
            real_wait(result)
            granted.set()
            closed.wait(support.DEADLINE_S)

        def work():
            try:
                client.lock(name, ttl=scenarios.LONG).acquire()
            except Unavailable as error:
                errors.append(str(error))

        with unittest.mock.patch.object(redlockd._sync._Acquired, "wait", wait):
            thread = threading.Thread(target=work)
            thread.start()
            self.assertTrue(granted.wait(support.DEADLINE_S))
            client.close()
            closed.set()
            thread.join(support.DEADLINE_S)
        self.assertEqual(errors, ["the client is closed"])
        await until("free", lambda: self.cluster.status(name) == "free")

    async def test_lock_again(self):
        with Redlock(self.cluster.address()) as client:
            lock = client.lock(new_name("again"), ttl=30)
            for _ in range(3):
                with lock:
                    with self.assertRaises(RuntimeError):
                        lock.acquire()

    async def test_threads_share_a_lock(self):
        """One thread acquires it; the others are told that they may not, and take nothing away."""

        class SlowLock(Lock):
            """Other threads run after each look at _busy."""

            @property
            def _busy(self):
                busy = self.is_busy
                time.sleep(0.01)
                return busy

            @_busy.setter
            def _busy(self, busy):
                self.is_busy = busy

        with Redlock(self.cluster.address()) as client:
            lock, outcomes = client.lock(new_name("shared"), ttl=30), []
            lock = SlowLock(client, lock._options)

            def work():
                try:
                    lock.acquire()
                    outcomes.append("acquired")
                except (RuntimeError, NotAcquired) as error:
                    outcomes.append(type(error).__name__)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(support.DEADLINE_S)
            self.assertEqual(sorted(outcomes), ["RuntimeError"] * 3 + ["acquired"])
            self.assertTrue(lock.unlock())

    async def test_check_is_never_a_limit_of_0(self):
        """A time limit of 0 means no limit to some programs."""
        with Redlock(self.cluster.address()) as client:
            lock = client.lock(new_name("check"), ttl=30).acquire()
            lock.remaining = lambda: 0.0  # the time between two readings of the clock
            with self.assertRaises(Lost):
                lock.check()
            del lock.remaining
            lock.unlock()

    async def test_a_signal_handler_may_raise_at_any_line(self):
        """As for KeyboardInterrupt. The lock is released all the same, and the client goes on."""
        package = os.path.dirname(redlockd.__file__)

        class Interrupt(BaseException):
            pass

        def interrupt(client, name):
            """Raises it at this line that this thread runs, if there are so many."""

            def trace(frame, event, arg):
                nonlocal left
                code = frame.f_code
                if not code.co_filename.startswith(package):
                    return None
                if event == "line":
                    lines[frame] = lines.get(frame, 0) + 1
                    # No context manager can catch what is raised before the try of its __exit__().
                    left -= code.co_name != "__exit__" or lines[frame] > 2
                    if left == 0:
                        raise Interrupt
                return trace

            lines = {}
            left = number
            sys.settrace(trace)
            try:
                with client.lock(name, ttl=30, hold=True) as lock:
                    lock.extend()
            except Interrupt:
                return True
            finally:
                sys.settrace(None)
            return False

        prefix = new_name("signal") + ":"
        clients = []

        def has_next():
            clients.append(Redlock(self.cluster.address()))
            interrupted = interrupt(clients[-1], f"{prefix}{number}")
            with clients[-1].lock(f"{prefix}after", ttl=30):
                return interrupted

        def is_free():
            names = [row["resource"] for row in self.cluster.rows("locks")]
            return not any(name.startswith(prefix) for name in names)

        gc.disable()  # an error that is raised in a finalizer of other tests would be ignored
        self.addCleanup(gc.enable)
        number = 1
        while has_next():
            number += 1
        self.assertGreater(number, 30)
        await until("free", is_free)
        for client in clients:
            client.close()

    async def test_the_collector_may_run_in_the_thread_of_the_client(self):
        """It then ends a generator that has a lock, which must not wait for that thread."""
        name, other = new_name("collector"), new_name("collector")
        client, real_now_ns = Redlock(self.cluster.address()), redlockd._sync.now_ns

        def holds():
            with client.lock(name, ttl=30, auto_extend=True):
                yield

        def collects():
            if threading.current_thread().name == "redlockd":
                gc.collect()
            return real_now_ns()

        def work():
            with client.lock(other, ttl=30):
                worked.set()

        gc.disable()
        self.addCleanup(gc.enable)
        cycle = [holds()]
        next(cycle[0])
        cycle.append(cycle)
        del cycle
        worked = threading.Event()
        with unittest.mock.patch.object(redlockd._sync, "now_ns", collects):
            threading.Thread(target=work, daemon=True).start()
            await until("the client to go on", worked.is_set)
        await until("free", lambda: self.cluster.status(name) == "free")
        client.close()

    async def test_a_lock_that_is_left_to_the_end_of_the_interpreter(self):
        """The thread of the client does not run any more, so nothing may wait for it."""
        code = f"""
from redlockd import Redlock, Unavailable

client = Redlock({self.cluster.address()!r})

def holds(lock=client.lock({new_name("end")!r}, ttl=30)):
    with lock:
        yield

work = holds()
next(work)

class Late:
    def __del__(self, lock=Redlock({self.cluster.address()!r}).lock("late", ttl=30)):
        try:
            lock.acquire()
        except Unavailable:
            pass

late = Late()
"""
        environment = dict(os.environ, PYTHONPATH=support.PACKAGE)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, env=environment, stderr=subprocess.PIPE
        )
        try:
            _, log = await support.within(child.communicate())
        except asyncio.TimeoutError:
            child.kill()
            raise
        self.assertEqual((child.returncode, log), (0, b""))

    async def test_too_many_threads(self):
        """The client has no thread to open a connection with, for a moment. It tries again."""
        lacking = threading.Event()
        real_start = threading.Thread.start

        def start(thread):
            if thread._target.__name__ == "_open" and not lacking.is_set():
                lacking.set()
                raise RuntimeError("can't start new thread")
            real_start(thread)

        daemon = support.ScriptedDaemon(
            lambda words: daemon.CLOSE if words[1] == "close" and not lacking.is_set() else "HELD 1"
        )
        self.addCleanup(daemon.close)
        with Redlock(daemon.address) as client:
            with self.assertRaises(NotAcquired):
                client.lock("a", ttl=30).acquire()
            with unittest.mock.patch.object(threading.Thread, "start", start):
                with self.assertRaises(NotAcquired):
                    client.lock("close", ttl=30, wait=2).acquire()
            self.assertTrue(lacking.is_set())

    async def test_fork(self):
        await fork(self)

    async def test_fork_while_connecting(self):
        """The connection ends with the parent, although the child lives on."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"tls://localhost:{listener.getsockname()[1]}"
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-W", "ignore", os.path.join(support.HERE, "child.py"),
                "forked_while_connecting", address, "a", "SyncClient", stdin=-1,
            )  # fmt: skip
            listener.settimeout(support.DEADLINE_S)
            conn, _ = listener.accept()
            with conn:
                conn.settimeout(support.DEADLINE_S / 4)
                self.assertNotEqual(conn.recv(1), b"")
                child.stdin.write(b"\n")
                try:
                    while conn.recv(4096):
                        pass
                finally:
                    await support.within(child.communicate(b"\n"))

    async def forks(self, program):
        """The connection ends with the parent, although the child lives on."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-W", "ignore", os.path.join(support.HERE, "child.py"),
                program, address, "a", "SyncClient", stdin=-1,
            )  # fmt: skip
            listener.settimeout(support.DEADLINE_S)
            conn, _ = listener.accept()
            with conn:
                conn.settimeout(support.DEADLINE_S / 4)
                try:
                    self.assertEqual(conn.recv(1), b"")
                finally:
                    await support.within(child.communicate(b"\n"))

    async def test_fork_after_connecting(self):
        """The connection is open, but the thread of the client does not know of it yet."""
        await self.forks("forked_after_connecting")

    async def test_fork_before_connecting(self):
        """The socket exists, but the client has had no time to take note of it."""
        await self.forks("forked_before_connecting")


async def fork(test):
    """In both clients: the child has none of the locks, and the parent keeps them."""
    name = new_name("fork")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", os.path.join(support.HERE, "child.py"), "forked",
        test.cluster.address(), name, test.Client.__name__,
        stdin=-1, stdout=-1,
    )  # fmt: skip
    facts = scenarios.json.loads(await support.within(child.stdout.readline()))
    test.assertFalse(facts["held"])
    test.assertEqual(facts["remaining"], 0)
    test.assertTrue(facts["lost"])
    test.assertEqual(facts["reason"], "forked")
    if test.Client is SyncClient:
        test.assertFalse(facts["unlocked"])
        test.assertFalse(facts["overlap"])
        test.assertTrue(facts["own"] and facts["own_hold"])
    parent = scenarios.json.loads(await support.within(child.stdout.readline()))
    test.assertTrue(parent["held"])
    test.assertEqual(test.cluster.status(name), "held")
    test.assertEqual(test.cluster.status(name + "-hold"), "held")
    out, _ = await support.within(child.communicate(b"\n"))
    test.assertTrue(scenarios.json.loads(out)["unlocked"])


class SyncSecured(scenarios.Secured, scenarios.Base):
    Client = SyncClient


if __name__ == "__main__":
    unittest.main()
