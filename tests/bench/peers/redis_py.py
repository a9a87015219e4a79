"""The algorithm of Redlock by redis-py, with asyncio: all masters at once, without retries."""

import asyncio
import secrets
import time
from contextlib import asynccontextmanager

from redis.asyncio import Redis

TTL_S = 2
DRIFT = 0.01
MARGIN_S = 0.002

RELEASE = """
if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0
"""


async def open(redis_ports, daemon_port):
    masters = [Redis(host="127.0.0.1", port=port) for port in redis_ports]
    releases = [master.register_script(RELEASE) for master in masters]

    @asynccontextmanager
    async def use(resource):
        token, began = secrets.token_hex(20), time.monotonic()
        try:
            sets = (master.set(resource, token, nx=True, px=TTL_S * 1000) for master in masters)
            votes = sum(1 for vote in await asyncio.gather(*sets) if vote)
            left = TTL_S * (1 - DRIFT) - MARGIN_S - (time.monotonic() - began)
            if votes <= len(masters) // 2 or left <= 0:
                raise RuntimeError(f"not locked: {votes} votes")
            yield
        finally:
            await asyncio.gather(*(release([resource], [token]) for release in releases))

    async def close():
        for master in masters:
            await master.close()

    return use, close
