"""The package client/python, with asyncio."""

import os
import sys

sys.path.insert(0, os.path.abspath("client/python"))
from redlockd import AsyncRedlock  # noqa: E402

TTL_S = 2


async def open(redis_ports, daemon_port):
    client = AsyncRedlock(f"tcp://127.0.0.1:{daemon_port}")
    return lambda resource: client.lock(resource, ttl=TTL_S), client.close
