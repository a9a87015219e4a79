"""The scenarios with redlockd.AsyncRedlock, and what only it has."""

import asyncio
import sys
import unittest
import unittest.mock

import scenarios
from redlockd import AsyncRedlock, Lost, Unavailable
from support import AsyncClient, new_name, until, within
from test_sync import fork


class Async(
    scenarios.Acquiring,
    scenarios.Extending,
    scenarios.Connecting,
    scenarios.Base,
):
    Client = AsyncClient
    options = {"daemons": 2, "masters": 3, "config": scenarios.CONFIG}

    async def test_with(self):
        name = new_name("with")
        async with AsyncRedlock(self.cluster.address()).lock(name, ttl=30, wait=10) as lock:
            self.assertGreater(lock.check(), 0)
            self.assertEqual(self.cluster.status(name), "held")
        self.assertEqual(self.cluster.status(name), "free")

    async def test_loss_cancels_the_task(self):
        name = new_name("cancels")
        async with AsyncRedlock(self.cluster.address()) as client:
            with self.assertRaises(Lost) as caught:
                async with client.lock(name, ttl=scenarios.LONG, hold=True):
                    self.assertEqual(self.cluster.redlock("break", name)["exit"], 0)
                    await within(asyncio.Event().wait())
            self.assertEqual(caught.exception.reason, "gone")
            # Nothing of the cancellation is left.
            await asyncio.sleep(0)
            if sys.version_info >= (3, 11):
                self.assertEqual(asyncio.current_task().cancelling(), 0)

    async def test_with_raises_if_the_lock_had_ended_before(self):
        name = new_name("ended")
        async with AsyncRedlock(self.cluster.address()) as client:
            with self.assertRaises(Lost) as caught:
                async with client.lock(name, ttl=30):
                    self.assertEqual(self.cluster.redlock("break", name)["exit"], 0)
            self.assertEqual(caught.exception.reason, "gone")

    async def test_loss_in_the_last_moment(self):
        """The work finds out by itself, or ends without an await after the loss."""
        async with AsyncRedlock(self.cluster.address()) as client:
            for checks in (True, False):
                with self.assertRaises(Lost):
                    async with client.lock(new_name("last"), ttl=scenarios.SHORT, wait=60) as lock:
                        while lock.held:
                            pass  # no await: the task cannot be cancelled
                        if checks:
                            lock.check()
                await asyncio.sleep(0)

    async def test_an_error_of_the_work_in_the_last_moment_stays(self):
        """The lock is lost, which cancels the task, but the work raises before that has an effect."""
        async with AsyncRedlock(self.cluster.address()) as client:
            with self.assertRaises(KeyError):
                async with client.lock(new_name("last"), ttl=scenarios.SHORT, wait=60) as lock:
                    while lock.held:
                        pass
                    raise KeyError
            await asyncio.sleep(0)

    @unittest.skipIf(sys.version_info < (3, 11), "cancellations are not counted")
    async def test_a_cancellation_in_the_last_moment_stays(self):
        async with AsyncRedlock(self.cluster.address()) as client:

            async def work():
                async with client.lock(new_name("last"), ttl=scenarios.SHORT, wait=60) as lock:
                    while lock.held:
                        pass
                    asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)

            with self.assertRaises(asyncio.CancelledError):
                await within(asyncio.create_task(work()))

    async def test_other_cancellations_stay(self):
        name = new_name("other")
        async with AsyncRedlock(self.cluster.address()) as client:
            entered = asyncio.Event()

            async def work():
                async with client.lock(name, ttl=scenarios.LONG):
                    entered.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await within(entered.wait())
            task.cancel("a reason")
            await within(asyncio.wait([task]))  # within() itself would drop the reason
            with self.assertRaises(asyncio.CancelledError) as caught:
                await task
            if sys.version_info >= (3, 11):  # before, a task drops it
                self.assertEqual(caught.exception.args, ("a reason",))
            await until("free", lambda: self.cluster.status(name) == "free")

    async def test_cancelled_with_the_grant_in_hand(self):
        """The grant has arrived, but the task is cancelled before it runs again."""
        name = new_name("grant")
        async with AsyncRedlock(self.cluster.address()) as client:
            for passes in range(60):
                task = asyncio.create_task(client.lock(name, ttl=scenarios.LONG).acquire())
                for _ in range(passes):
                    await asyncio.sleep(0)
                if task.cancel():
                    with self.assertRaises(asyncio.CancelledError):
                        await within(task)
                else:
                    await task.result().unlock()

                async def is_free():
                    return await client.try_lock(name, ttl=50)

                lock = await until("the lock to be free", is_free)
                await lock.unlock()

    async def test_closed_with_the_grant_in_hand(self):
        """The grant has arrived, but the client is closed before the task runs again."""
        name = new_name("closing")
        client = AsyncRedlock(self.cluster.address())
        lock = client.lock(name, ttl=scenarios.LONG)
        set_leases = lock._set_leases

        def close_soon(leases):
            set_leases(leases)
            asyncio.get_running_loop().call_soon(client._driver.start_close)

        with unittest.mock.patch.object(lock, "_set_leases", close_soon):
            with self.assertRaises(Unavailable):  # another client does not hold it
                await within(lock.acquire())
        await until("free", lambda: self.cluster.status(name) == "free")

    async def test_a_cancelled_connection_is_made_again(self):
        """A program that ends cancels all tasks, also the one that connects."""
        client, name = AsyncRedlock(self.cluster.address()), new_name("connecting")
        acquiring = asyncio.create_task(client.lock(name, ttl=30, wait=50).acquire())
        await asyncio.sleep(0)
        (connecting,) = client._driver._opening.values()
        connecting.cancel()
        lock = await within(acquiring)
        self.assertTrue(lock.held)
        self.assertEqual(client._driver._opening, {})
        await client.close()

    @unittest.skipIf(sys.version_info < (3, 12), "has no eager tasks")
    async def test_eager_tasks(self):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        try:
            addresses = ["unix:/nonexistent/socket", self.cluster.address()]
            async with AsyncRedlock(addresses) as client:
                async with client.lock(new_name("eager"), ttl=30):
                    self.assertEqual(client._driver._opening, {})
        finally:
            asyncio.get_running_loop().set_task_factory(None)

    async def test_close_does_not_leave_a_connection_to_a_silent_daemon(self):
        client = AsyncRedlock(self.cluster.address())
        lock = await client.lock(new_name("silent"), ttl=30).acquire()
        self.cluster.command("pause-daemon 0")
        try:
            unlocking = asyncio.create_task(lock.unlock())
            await asyncio.sleep(0)
            await client.close()
            with self.assertRaises(Unavailable):
                await unlocking
            self.assertEqual((client._driver.connections, client._driver._sockets), ({}, {}))
        finally:
            self.cluster.command("continue-daemon 0")

    async def test_closed_coroutine(self):
        """The caller drops the coroutine instead of cancelling a task."""
        name = new_name("closed")
        async with AsyncRedlock(self.cluster.address()) as client:
            await client.try_lock(new_name("first"), ttl=1)  # connects
            acquiring = client.lock(name, ttl=scenarios.LONG, auto_extend=True).acquire()
            acquiring.send(None)
            acquiring.close()
            lock = await client.lock(name, ttl=30, wait=20).acquire()
            await lock.unlock()

    async def test_unlock_in_another_loop_changes_nothing(self):
        async with AsyncRedlock(self.cluster.address()) as client:
            lock = await client.lock(new_name("loop"), ttl=30).acquire()

            def other():
                with self.assertRaises(RuntimeError):
                    asyncio.run(lock.unlock())

            await asyncio.get_running_loop().run_in_executor(None, other)
            self.assertTrue(lock.held)
            self.assertTrue(await lock.unlock())

    async def test_another_loop(self):
        client = AsyncRedlock(self.cluster.address())

        async def use():
            await client.try_lock(new_name("loop"), ttl=1)

        await use()

        def other():
            with self.assertRaises(RuntimeError):
                asyncio.run(use())

        await asyncio.get_running_loop().run_in_executor(None, other)
        await client.close()

    async def test_fork(self):
        await fork(self)


class AsyncSecured(scenarios.Secured, scenarios.Base):
    Client = AsyncClient


if __name__ == "__main__":
    unittest.main()
