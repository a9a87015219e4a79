"""Programs that tests run as child processes: child.py PROGRAM ADDRESS NAME CLIENT"""

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time

import support
from redlockd import AsyncRedlock, Lost, NotAcquired, Redlock, Unavailable, _clock


def watch(lock, stop):
    """Notes all the time whether the lock is held. Yields the last time at which it was, at least
    once."""
    last_held_ns = 0
    while True:
        now = _clock.now_ns()
        if lock.held:
            if last_held_ns == 0:
                print("held", flush=True)
            last_held_ns = now
        yield last_held_ns
        if stop():
            return


def why_lost(lock):
    try:
        lock.check()
    except Lost as error:
        return error.reason


def report(lock, last_held_ns):
    try:
        lock.check()
        lost = ""
    except Lost as error:
        lost = str(error)
    print(json.dumps({"last_held_ns": last_held_ns, "lost": lost}), flush=True)


def read_line(told):
    sys.stdin.readline()
    told.set()


def suspended_sync(address, name):
    told = threading.Event()
    with Redlock(address) as client:
        lock = client.lock(name, ttl=3, auto_extend=True).acquire()
        threading.Thread(target=read_line, args=(told,), daemon=True).start()
        for last_held_ns in watch(lock, told.is_set):
            lock.lost.wait(0.001)
        report(lock, last_held_ns)


async def suspended_async(address, name):
    told = threading.Event()
    async with AsyncRedlock(address) as client:
        lock = await client.lock(name, ttl=3, auto_extend=True).acquire()
        threading.Thread(target=read_line, args=(told,), daemon=True).start()
        for last_held_ns in watch(lock, told.is_set):
            await asyncio.sleep(0.001)
        report(lock, last_held_ns)


def forked(address, name):
    """Forks with a lock, a HOLD and a second thread that waits for a lock."""
    client = Redlock(address)
    lock = client.lock(name, ttl=30).acquire()
    hold = client.lock(name + "-hold", ttl=30, hold=True).acquire()
    event = hold.lost
    waiter = threading.Thread(target=client.lock(name, ttl=30, wait=30).acquire, daemon=True)
    waiter.start()
    pid = os.fork()
    if pid == 0:
        facts = {
            "held": lock.held or hold.held,
            "remaining": max(lock.remaining(), hold.remaining()),
            "unlocked": lock.unlock() or hold.unlock(),
            "lost": hold.lost.is_set() and not event.is_set(),
            "reason": why_lost(lock),
        }
        try:
            client.lock(name, ttl=30).acquire()
            facts["overlap"] = True
        except NotAcquired:
            facts["overlap"] = False
        with client.lock(name + "-child", ttl=30) as own:
            facts["own"] = own.check() > 0
        lock2 = client.lock(name + "-left", ttl=30, hold=True).acquire()
        facts["own_hold"] = lock2.held
        print(json.dumps(facts), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    print(json.dumps({"held": lock.held and hold.held}), flush=True)
    sys.stdin.readline()
    print(json.dumps({"unlocked": lock.unlock() and hold.unlock()}), flush=True)


def forked_while_connecting(address, name):
    """Forks while the daemon does not answer to the TLS handshake, and gives up."""

    def acquire():
        try:
            Redlock(address, timeout=1).lock(name, ttl=30).acquire()
        except Unavailable:
            pass

    connecting = threading.Thread(target=acquire)
    connecting.start()
    sys.stdin.readline()
    pid = os.fork()
    if pid == 0:
        time.sleep(support.DEADLINE_S)
        os._exit(0)
    connecting.join()
    sys.stdin.readline()
    os.kill(pid, signal.SIGKILL)


def acquire_and_connect(address, name):
    """Starts to acquire. Returns an event: the connection is open. It is never used."""
    client, connected = Redlock(address), threading.Event()
    real_post = client._driver.post

    def post(operation):
        if threading.current_thread() is not acquiring:
            connected.set()
            threading.Event().wait()
        real_post(operation)

    client._driver.post = post
    acquiring = threading.Thread(target=client.lock(name, ttl=30).acquire, daemon=True)
    acquiring.start()
    return connected


def forked_after_connecting(address, name):
    """Forks with an open connection that is not in use yet, and ends."""
    acquire_and_connect(address, name).wait()
    if os.fork() == 0:
        sys.stdin.readline()
    os._exit(0)


def forked_before_connecting(address, name):
    """Forks when the socket has just been created, and ends when it is connected."""
    created = threading.Event()

    class Socket(socket.socket):
        def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
            super().__init__(family, type, proto, fileno)
            if fileno is None:
                created.set()
                time.sleep(0.3)  # for the fork, if nothing prevents it

    socket.socket = Socket
    connected = acquire_and_connect(address, name)
    created.wait()
    if os.fork() == 0:
        sys.stdin.readline()
        os._exit(0)
    connected.wait()
    os._exit(0)


async def forked_async(address, name):
    async with AsyncRedlock(address) as client:
        lock = await client.lock(name, ttl=30).acquire()
        hold = await client.lock(name + "-hold", ttl=30, hold=True).acquire()
        pid = os.fork()
        if pid == 0:
            facts = {
                "held": lock.held or hold.held,
                "remaining": max(lock.remaining(), hold.remaining()),
                "lost": hold.lost.is_set(),
                "reason": why_lost(lock),
            }
            print(json.dumps(facts), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print(json.dumps({"held": lock.held and hold.held}), flush=True)
        sys.stdin.readline()
        unlocked = await lock.unlock() and await hold.unlock()
        print(json.dumps({"unlocked": unlocked}), flush=True)


if __name__ == "__main__":
    PR_SET_PDEATHSIG = 1  # Ctrl-C ends the tests, but not a child that is stopped
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    program, address, name, client = sys.argv[1:]
    if client == "SyncClient":
        {
            "suspended": suspended_sync,
            "forked": forked,
            "forked_while_connecting": forked_while_connecting,
            "forked_after_connecting": forked_after_connecting,
            "forked_before_connecting": forked_before_connecting,
        }[program](address, name)
    else:
        asyncio.run({"suspended": suspended_async, "forked": forked_async}[program](address, name))
