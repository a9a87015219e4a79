"""Detects forks. A connection and its locks belong to the process that made them."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol, Tuple


class Forked(Protocol):
    """An object with state that a forked child must not use."""

    def after_fork(self) -> None:
        """Called in the child, before any other code of the child."""


_watched: weakref.WeakSet[Forked] = weakref.WeakSet()
_generation = 0

# Held while a socket is created, until its owner can close it after a fork: no fork comes between.
# Reentrant, because a signal handler may fork in the same thread.
sockets = threading.RLock()


def process_id() -> Tuple[int, int]:
    """Identifies this process. The PID alone does not: a child in a new PID namespace can have the
    PID of its parent. The generation alone does not: code in C can fork without telling Python."""
    return _generation, os.getpid()


def watch(forked: Forked) -> None:
    """Calls forked.after_fork() in every forked child, as long as the object lives."""
    _watched.add(forked)


def _after_fork() -> None:
    global _generation
    _generation += 1
    for forked in list(_watched):
        forked.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=sockets.acquire, after_in_parent=sockets.release, after_in_child=sockets.release
    )
    os.register_at_fork(after_in_child=_after_fork)
