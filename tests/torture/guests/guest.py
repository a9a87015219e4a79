"""A guest of the torture with the Python package: guest.py threads|asyncio. See guests.h."""

import asyncio
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, "client/python")
from redlockd import AsyncRedlock, Redlock, RedlockError  # noqa: E402

WORKERS = 4
NAME = os.environ["GUEST_NAME"]
DAEMONS = os.environ["GUEST_DAEMONS"].split()
FINISH = os.environ["GUEST_FINISH"]
SEED = os.environ["GUEST_SEED"]
OVERCLAIM_NS = int(os.environ["GUEST_OVERCLAIM_MS"]) * 1_000_000
GROWN_NS = 5_000_000


def write(text):
    os.write(1, f"{NAME} {text}\n".encode())


class Visit:
    """One lock, as its worker plans and reports it."""

    def __init__(self, rnd):
        self.ttl = rnd.randrange(600, 1001) / 1000
        self.way = rnd.choice(["plain", "extend", "auto", "hold"])
        slots = rnd.random() < 0.3
        self.resource = "r" if slots else f"r#{rnd.randrange(6)}"
        self.work = rnd.randrange(1500 if rnd.random() < 0.07 else 60) / 1000
        self.forgets = self.way in ("plain", "extend") and rnd.random() < 0.04
        self.until = 0
        self.options = {
            "ttl": self.ttl,
            "wait": rnd.choice([0, rnd.random() * 2, rnd.random() * 2]),
            "fence": rnd.random() < 0.5,
            "auto_extend": self.way == "auto",
            "hold": self.way == "hold",
            "slots": rnd.randrange(1, 6) if slots else None,
        }

    def report(self, lock):
        """Reports how long the lock is held: at first, and when that has grown."""
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        until = now + int(lock.remaining() * 1e9) + OVERCLAIM_NS
        if self.until and until < self.until + GROWN_NS:
            return
        write(f"{'more' if self.until else 'held'} {lock.resource} {lock.token} {lock.fence or 0} "
              f"{self.ttl * 1000:.0f} {now} {until}")  # fmt: skip
        self.until = until

    def free(self, lock):
        write(f"free {lock.resource} {lock.token}")


def visit(client, rnd):
    plan = Visit(rnd)
    lock = client.lock(plan.resource, **plan.options)
    lock.acquire()
    try:
        plan.report(lock)
        end = time.monotonic() + plan.work
        while lock.held and time.monotonic() < end:
            time.sleep(0.01)
            if plan.way == "extend" and rnd.random() < 0.1:
                lock.extend()
            plan.report(lock)
    finally:
        if not plan.forgets:
            plan.free(lock)
            lock.unlock()


async def visit_aio(client, rnd):
    plan = Visit(rnd)
    expired = False
    async with client.lock(plan.resource, **plan.options) as lock:
        try:
            plan.report(lock)
            end = time.monotonic() + plan.work
            while lock.held and time.monotonic() < end:
                await asyncio.sleep(0.01)
                if plan.way == "extend" and rnd.random() < 0.1:
                    await lock.extend()
                plan.report(lock)
            if plan.forgets:
                await asyncio.sleep(lock.remaining())
                expired = True
        finally:
            if not expired:
                plan.free(lock)


def client_options(number):
    # Each worker prefers another daemon.
    return {"addresses": DAEMONS[number:] + DAEMONS[:number], "timeout": 1, "name": NAME}


def work(number):
    rnd = random.Random(f"{SEED}.{number}")
    with Redlock(**client_options(number)) as client:
        while not os.path.exists(FINISH):
            try:
                visit(client, rnd)
            except RedlockError:
                time.sleep(0.02)


async def work_aio(number):
    rnd = random.Random(f"{SEED}.{number}")
    async with AsyncRedlock(**client_options(number)) as client:
        while not os.path.exists(FINISH):
            try:
                await asyncio.wait_for(visit_aio(client, rnd), 0.1 + rnd.randrange(4000) / 1000)
            except (RedlockError, asyncio.TimeoutError):
                await asyncio.sleep(0.02)


async def main_aio():
    await asyncio.gather(*(work_aio(number) for number in range(WORKERS)))


if sys.argv[1] == "asyncio":
    asyncio.run(main_aio())
else:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
