"""What the locks of both clients have in common."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from . import _fork
from ._calls import HELD, Failed, Lease, Outcome
from ._clock import now_ns
from ._engine import Engine
from ._protocol import LockOptions, explain_loss, seconds, ttl_to_ms
from .errors import Lost, NotAcquired, RedlockError, Unavailable


class Grant(NamedTuple):
    """One acquired resource.

    resource: its name; with slots, the name of the slot.
    token: with it, any client can extend and release the lock. Keep it secret.
    fence: the fencing token, or None.
    """

    resource: str
    token: str
    fence: Optional[int]

    def __repr__(self) -> str:
        return f"Grant(resource={self.resource!r}, fence={self.fence!r})"


class LockBase:
    """The state of a lock that does not depend on the kind of client."""

    def __init__(self, options: LockOptions) -> None:
        self._options = options
        self._leases: List[Lease] = []
        self._grants: Tuple[Grant, ...] = ()  # of the last acquire(), also after unlock()
        self._reason: Optional[str] = None  # why the lock is lost
        self._text = ""  # the same for people
        self._busy = False  # acquire() or unlock() is under way
        self._tried = False  # acquired by try_lock(): the next with statement does not acquire it
        self._process = _fork.process_id()

    # --- state ---

    @property
    def held(self) -> bool:
        """Whether the lock is held, now. Use check() before each step of the work."""
        return bool(self._leases) and self._why_lost() is None

    @property
    def grants(self) -> Tuple[Grant, ...]:
        """What was acquired last, in the order of the bytes of the names; () before acquire()."""
        return self._grants

    @property
    def resource(self) -> str:
        """The name of the lock; with slots, that of the slot. For several resources use grants."""
        return self._only().resource

    @property
    def token(self) -> str:
        """The token of the lock. For several resources use grants."""
        return self._only().token

    @property
    def fence(self) -> Optional[int]:
        """The fencing token: send it along with each write, and let the store refuse a number that
        is smaller than the greatest it has seen. None if the lock was acquired without one. For
        several resources use grants."""
        return self._only().fence

    def remaining(self) -> float:
        """Seconds until another client can have the lock; 0 if that is possible already.

        After a loss, this is the time in which the work has to stop.
        """
        return max(0.0, seconds(self._deadline_ns() - now_ns()))

    def check(self) -> float:
        """Raises Lost if the lock is not held. Returns the remaining time in seconds, above 0.

        Call it before each step of the work, and use the result as the time limit of that step.
        """
        reason = self._why_lost()
        if reason is None:
            remaining = self.remaining()
            if remaining > 0:
                return remaining
            reason = self._why_lost() or "expired"
        raise self._lost_error(reason)

    def __repr__(self) -> str:
        names = b", ".join(self._options.resources).decode()
        state = "held" if self.held else "not held"
        return f"<{type(self).__name__} {names}: {state}>"

    # --- for the clients ---

    def _expire(self) -> None:
        """Lets the engine lose the leases whose time is over."""
        raise NotImplementedError

    def _deadline_ns(self) -> int:
        leases = self._leases  # another thread may unlock meanwhile
        if not leases or self._process != _fork.process_id():
            return 0
        return min([lease.deadline_ns for lease in leases])

    def _why_lost(self) -> Optional[str]:
        """Why the lock is not held, as in Lost.reason; None if it is held."""
        if self._process != _fork.process_id():
            return "forked"
        if self._reason is None:
            now = now_ns()
            for lease in self._leases:
                if now >= lease.give_up_ns():
                    self._expire()  # unless it is being extended just now
        if self._reason is not None:
            return self._reason
        return None if self._leases else "released"

    def _lost_error(self, reason: str) -> Lost:
        names = b", ".join(self._options.resources).decode()
        return Lost(names, reason, self._explain(reason))

    def _explain(self, reason: str) -> str:
        return self._text if reason == self._reason else explain_loss(reason)

    def _note_loss(self, lease: Lease) -> bool:
        """Takes note of a lost lease. Returns True for the first one of an acquired lock."""
        if self._reason is not None or not any(each is lease for each in self._leases):
            return False
        self._reason, self._text = lease.reason, lease.text
        return True

    def _begin_acquire(self) -> None:
        if self._process != _fork.process_id():
            self._busy, self._leases = False, []  # they belong to the parent
        if self._busy or self._leases:
            raise RuntimeError("the lock is acquired already, or is being acquired")
        self._busy, self._reason, self._grants = True, None, ()
        self._process = _fork.process_id()

    def _set_leases(self, leases: List[Lease]) -> None:
        """The lock is acquired. A lease may be lost again already."""
        self._leases = leases
        self._grants = tuple(
            Grant(lease.resource.decode(), lease.token.decode(), lease.fence) for lease in leases
        )
        for lease in leases:
            if lease.state != HELD:
                self._note_loss(lease)

    def _late_error(self) -> Optional[NotAcquired]:
        """For acquire(): the error if the process was stopped before it could take the lock."""
        reason = self._why_lost()
        if reason is None:
            return None
        return NotAcquired(f"acquired, but lost at once: {self._explain(reason)}")

    def _take_tried(self) -> bool:
        """For a with statement that begins: whether the lock is acquired already."""
        tried, self._tried = self._tried, False
        return tried and bool(self._leases)

    def _take_leases(self) -> List[Lease]:
        """For unlock(): from now on, the lock is not acquired."""
        self._tried = False
        leases, self._leases = self._leases, []
        return leases

    def _ttl_ms(self, ttl: Optional[float]) -> int:
        """The argument of extend()."""
        return self._options.ttl_ms if ttl is None else ttl_to_ms(ttl)

    def _only(self) -> Grant:
        if len(self._grants) != 1:
            many = len(self._grants) > 1
            raise ValueError("use grants: there are several resources" if many else "not acquired")
        return self._grants[0]


class Extension(Failed):
    """Waits for the outcomes of the EXTENDs of one extend()."""

    def __init__(self) -> None:
        self.left = 0
        self.error: Optional[RedlockError] = None

    def start(self, engine: Engine, leases: List[Lease], ttl_ms: int) -> None:
        now = now_ns()
        self.left = len(leases)
        for lease in leases:
            if lease.state == HELD:
                engine.extend(lease, ttl_ms, self.on_outcome, now)
            else:  # since the caller has looked
                self.on_outcome(Outcome(b"", 0, Unavailable("the lock has ended")), now)

    def on_outcome(self, outcome: Outcome, now: int) -> None:
        self.left -= 1
        if self.error is None:
            self.error = outcome.error
        if self.left == 0:
            self.on_end()

    def on_end(self) -> None:
        raise NotImplementedError


def why_gone(leases: List[Lease]) -> str:
    """Why a lock that was held just before its UNLOCK was not held any more."""
    return next((lease.reason for lease in leases if lease.reason), "gone")


def was_held(outcomes: List[Outcome]) -> bool:
    """Whether each UNLOCK has released the lock. If none says that it had ended before, raises the
    error of one that failed."""
    if any(outcome.word == b"GONE" for outcome in outcomes):
        return False
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.take_error()
    return True
