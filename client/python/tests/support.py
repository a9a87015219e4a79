"""What the tests share: the fixture, a scripted daemon, and one interface to both clients."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
ROOT = os.path.dirname(os.path.dirname(PACKAGE))
if not os.environ.get("REDLOCKD_INSTALLED"):  # else the tests use the installed package
    sys.path.insert(0, PACKAGE)

import redlockd  # noqa: E402

DEADLINE_S = 60  # only for tests that hang


class Cluster:
    """The program tests/clients/fixture.py."""

    def __init__(self, **options):
        build = os.path.join(ROOT, os.environ.get("BUILD", "build"))
        argv = [sys.executable, os.path.join(ROOT, "tests/clients/fixture.py"), "--build", build]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.mutex = threading.Lock()
        self.started = self.command("start " + json.dumps(options))

    def command(self, line):
        with self.mutex:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            reply = json.loads(self.process.stdout.readline())
        if not reply["ok"]:
            raise AssertionError(f"{line}: {reply['error']}")
        return reply

    def address(self, number=0, kind="unix"):
        return self.started["daemons"][number][kind]

    def redlock(self, *words):
        return self.command("redlock " + json.dumps(words))

    def rows(self, *words):
        """A listing of daemon 0."""
        reply = self.redlock("--json", *words)
        if reply["exit"] != 0:
            raise AssertionError(reply["err"])
        return json.loads(reply["out"])

    def status(self, name):
        return json.loads(self.redlock("--json", "status", name)["out"])["status"]

    def waiters(self, name):
        return sum(row["waiters"] for row in self.rows("locks", name))

    def close(self):
        self.process.stdin.close()
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()


async def until(what, condition):
    """Waits for a condition. The condition may be a coroutine function."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        result = condition()
        if asyncio.iscoroutine(result):
            result = await result
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain: {what}")
        await asyncio.sleep(0.01)


async def within(awaitable):
    return await asyncio.wait_for(awaitable, DEADLINE_S)


class ScriptedDaemon:
    """A daemon that answers as a script says. script(words) gets a request without its tag, and
    returns the reply, or CLOSE, or CUT: send all but the LF of a reply, and close; or None."""

    CLOSE = object()

    def __init__(self, script, banner=b""):
        self.banner = banner  # if not empty: what it sends before it closes the connection
        self.directory = tempfile.mkdtemp(prefix="redlockd-scripted.")
        self.path = os.path.join(self.directory, "socket")
        self.address = "unix:" + self.path
        self.script = script
        self.requests = []  # of all connections, without the greeting
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        with conn, conn.makefile("rb") as lines:
            conn.sendall(self.banner)
            if self.banner:
                return
            for line in lines:
                tag, *words = line.decode().split()
                if words[0] == "QUIT":
                    return
                if words[0] == "PING":
                    reply = "PONG"
                else:
                    self.requests.append(words)
                    reply = self.script(words)
                if reply is self.CLOSE:
                    return
                if isinstance(reply, bytes):
                    conn.sendall(tag.encode() + b" " + reply)
                    return
                if reply is not None:
                    conn.sendall(f"{tag} {reply}\n".encode())

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        shutil.rmtree(self.directory)


# --- one interface to both clients ---


class SyncClient:
    """redlockd.Redlock, with coroutines for the functions that block."""

    def __init__(self, *args, **kwargs):
        self.client = redlockd.Redlock(*args, **kwargs)
        self.pool = concurrent.futures.ThreadPoolExecutor(1200)

    def run(self, function, *args):
        return asyncio.get_running_loop().run_in_executor(self.pool, function, *args)

    def lock(self, *args, **kwargs):
        return SyncLock(self, self.client.lock(*args, **kwargs))

    async def try_lock(self, *args, **kwargs):
        lock = await self.run(lambda: self.client.try_lock(*args, **kwargs))
        return None if lock is None else SyncLock(self, lock)

    async def close(self):
        await self.run(self.client.close)


class SyncLock:
    def __init__(self, client, lock):
        self.client, self.lock = client, lock

    async def acquire(self):
        running = self.client.run(self.lock.acquire)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self.lock.cancel()
            running.add_done_callback(lambda done: done.exception())
            raise
        return self

    async def unlock(self):
        return await self.client.run(self.lock.unlock)

    async def extend(self, *args):
        return await self.client.run(self.lock.extend, *args)

    @contextlib.asynccontextmanager
    async def entered(self):
        """The statement `with lock`."""
        await self.client.run(self.lock.__enter__)
        try:
            yield
        finally:
            await self.client.run(self.lock.__exit__, None, None, None)

    async def wait_lost(self):
        assert await self.client.run(self.lock.lost.wait, DEADLINE_S), "not lost"

    def __getattr__(self, name):
        return getattr(self.lock, name)


class AsyncClient:
    """redlockd.AsyncRedlock."""

    def __init__(self, *args, **kwargs):
        self.client = redlockd.AsyncRedlock(*args, **kwargs)

    def lock(self, *args, **kwargs):
        return AsyncLock(self.client.lock(*args, **kwargs))

    async def try_lock(self, *args, **kwargs):
        lock = await self.client.try_lock(*args, **kwargs)
        return None if lock is None else AsyncLock(lock)

    async def close(self):
        await self.client.close()


class AsyncLock:
    def __init__(self, lock):
        self.lock = lock

    async def acquire(self):
        await self.lock.acquire()
        return self

    def entered(self):
        return self.lock

    async def wait_lost(self):
        await within(self.lock.lost.wait())

    def __getattr__(self, name):
        return getattr(self.lock, name)


_numbers = itertools.count()


def new_name(title):
    return f"{title}-{next(_numbers)}"
