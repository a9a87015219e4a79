# Takes a lock with the Python client of docs/clients.md and works under it; see test_doc_clients.c.
#     guest.py DIR PORT RESOURCE TTL_MS WAIT_MS WORK
import importlib.util
import os
import sys
import time

folder, port, resource, ttl_ms, wait_ms, work = sys.argv[1:]
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("client", folder + "/client.py")
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)


def report(text):
    print(text, flush=True)


def until_finish(lock):
    report(f"working {lock.fence}")
    while not os.path.exists(folder + "/finish"):
        time.sleep(0.005)


def fail(lock):
    raise RuntimeError("the work failed")


def alone(lock):
    inside = os.open(folder + "/inside", os.O_CREAT | os.O_EXCL)  # fails if another client is inside
    with open(folder + "/fences", "a") as fences:
        fences.write(f"{lock.fence}\n")
    time.sleep(0.002)  # the work
    os.close(inside)
    os.unlink(folder + "/inside")


works = {"until-finish": (until_finish, 1), "fail": (fail, 1), "alone": (alone, 25)}
do, times = works[work]
try:
    for _ in range(times):
        with client.locked(("127.0.0.1", int(port)), resource, int(ttl_ms), int(wait_ms)) as lock:
            do(lock)
    report("done")
except client.NotLocked as answer:
    report(f"not locked: {answer}")
except Exception as error:
    report(f"error: {error}")
