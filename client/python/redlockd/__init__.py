"""Client of redlockd, a lock manager for Redis masters.

    from redlockd import Redlock

    with Redlock("tcp://127.0.0.1:7335").lock("deploy", ttl=30, wait=10) as lock:
        deploy(timeout=lock.check())

Redlock is for threads, AsyncRedlock for asyncio. Times are seconds.
"""

from ._aio import AsyncLock, AsyncRedlock
from ._lock import Grant
from ._sync import Lock, Redlock
from .errors import (
    Denied,
    Lost,
    NoQuorum,
    NotAcquired,
    RedlockError,
    Rejected,
    Unavailable,
)

__version__ = "0.2.0"

__all__ = [
    "AsyncLock",
    "AsyncRedlock",
    "Denied",
    "Grant",
    "Lock",
    "Lost",
    "NoQuorum",
    "NotAcquired",
    "RedlockError",
    "Redlock",
    "Rejected",
    "Unavailable",
]
