"""Run a lock client in Python for a while, as fast as it gets replies, for tests/bench/peer.c:

    python3 bench.py PEER.py apart IN_FLIGHT MS HOLD_MS REDIS_PORTS DAEMON_PORT ETCD_PORT

PEER.py is a module beside this one with open(redis_ports, daemon_port) -> use, close. use(resource)
is an asynchronous context manager that acquires and releases the lock. Each client has a resource
of its own. The output is that of bench.mjs, without hand-overs.
"""

import asyncio
import importlib
import sys
import time

WARM_UP_S = 0.5


async def play(use, resource, ends, counts, acquires):
    while not ends.is_set():
        asked_ns = time.perf_counter_ns()
        try:
            async with use(resource):
                granted_ns = time.perf_counter_ns()
        except Exception as error:
            if counts["failed"] == 0:
                print(repr(error), file=sys.stderr)
            counts["failed"] += 1
            continue
        counts["all_pairs"] += 1
        if counts["measuring"]:
            counts["pairs"] += 1
            acquires.append(granted_ns - asked_ns)


async def main(peer, how, in_flight, for_ms, hold_ms, redis_ports, daemon_port, _etcd_port):
    if how != "apart" or hold_ms != "0":
        sys.exit("bench.py can only measure clients apart that hold no lock for a while")
    peer = importlib.import_module(peer.removesuffix(".py"))
    ports = [int(port) for port in redis_ports.split(",")]
    use, close = await peer.open(ports, int(daemon_port))
    counts = {"pairs": 0, "all_pairs": 0, "failed": 0, "measuring": False}
    acquires, turns, ends = [], [[] for _ in range(int(in_flight))], asyncio.Event()
    players = [
        asyncio.create_task(play(use, f"peers-{number}", ends, counts, own))
        for number, own in enumerate(turns)
    ]
    await asyncio.sleep(WARM_UP_S)
    began, cpu_s = time.perf_counter(), time.process_time()
    counts["measuring"] = True
    await asyncio.sleep(int(for_ms) / 1000)
    counts["measuring"] = False
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
    ends.set()
    await asyncio.gather(*players)
    await close()

    squares = sum(len(own) ** 2 for own in turns)
    jain = counts["pairs"] ** 2 / (len(turns) * squares) if squares else 0
    print("seconds", seconds, "\ncpu_us", cpu_s * 1e6, "\njain", jain)
    for name in ("pairs", "all_pairs", "failed"):
        print(name, counts[name])
    acquires = [ns for own in turns for ns in own]
    print("\n".join(f"acquire {ns}" for ns in acquires))


asyncio.run(main(*sys.argv[1:]))
