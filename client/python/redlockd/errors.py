"""The errors of this package. All of them are RedlockError."""

from __future__ import annotations

from typing import Dict, Optional, Tuple


_TTL_HINT = "; for work that takes longer, let the lock be extended (auto_extend)"


class RedlockError(Exception):
    """The base class of the errors below."""


class NotAcquired(RedlockError):
    """The lock was not acquired: another client holds it, or the wait is over.

    hint: seconds after which the lock can be free if no client extends or releases it; None if
    that is not known.
    """

    def __init__(self, message: str, hint: Optional[float] = None) -> None:
        super().__init__(message)
        self.hint = hint


class NoQuorum(RedlockError):
    """Too few masters could vote.

    reasons: for each master that could not vote, its name and the reason.
    """

    def __init__(self, message: str, reasons: Optional[Dict[str, str]] = None) -> None:
        super().__init__(message)
        self.reasons = reasons if reasons is not None else {}


class Lost(RedlockError):
    """The lock is lost: stop the work that it protects. Another client may hold the lock.

    reason: one of the codes in the README, for example "gone" or "unextended". The message says it
    for people.
    """

    def __init__(self, resource: str, reason: str, text: Optional[str] = None) -> None:
        super().__init__(f"the lock {resource} is lost: {reason if text is None else text}")
        self.resource = resource
        self.reason = reason
        self._text = text

    def __reduce__(self) -> Tuple[object, ...]:  # a pool of processes pickles errors
        return type(self), (self.resource, self.reason, self._text)


class Denied(RedlockError):
    """The daemon does not accept the secret, or the user does not have the permission."""


class Unavailable(RedlockError):
    """No daemon could carry out the request: none can be reached, none has answered in time, or
    a limit of the daemon is reached.

    limit: the limit that is reached, as the daemon names it, for example "waiters"; or None.
    """

    def __init__(self, message: str, limit: Optional[str] = None) -> None:
        super().__init__(message)
        self.limit = limit


class Rejected(RedlockError, ValueError):
    """The daemon has rejected the request, for example because the TTL is out of range.

    code: the code of the error in docs/protocol.txt, for example "ttl-range".
    """

    def __init__(self, code: str, message: str) -> None:
        hint = _TTL_HINT if code == "ttl-range" else ""
        super().__init__(f"redlockd rejected the request: {message} ({code}){hint}")
        self.code = code
        self._message = message

    def __reduce__(self) -> Tuple[object, ...]:
        return type(self), (self.code, self._message)
