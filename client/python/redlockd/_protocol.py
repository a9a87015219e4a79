"""The line protocol: requests are checked and formatted here, and replies are parsed. Pure.

docs/protocol.txt defines the lines. The parser is strict, because the meaning of a line that no
daemon sends could only be guessed.
"""

from __future__ import annotations

import math
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from ._clock import NS_PER_MS, NS_PER_S
from .errors import Denied, NoQuorum, NotAcquired, RedlockError, Rejected, Unavailable

NEVER = 1 << 62  # a time after all others

WAIT_MAX_MS = 24 * 3600 * 1000
SLOTS_MAX = 1000
FENCE_MAX = (1 << 53) - 1
REPLY_MAX = 64 * 1024  # bytes of a line that is still incomplete
RESOURCE_MAX = 256

_RESOURCE = re.compile(rb"[^\x00-\x20\x7f]+")
_SECRET = re.compile(rb"[^\x00-\x20\x7f]{1,256}")
_LABEL = re.compile(r"[A-Za-z0-9_.:-]{1,32}")
_TOKEN = re.compile(rb"[0-9a-f]{40}").fullmatch


class Garbled(Exception):
    """The peer sent a line that no redlockd sends."""


# --- requests ---


def check_resource(name: str, slots: Optional[int] = None) -> bytes:
    """The bytes of the name. Raises ValueError if the daemon would not accept it."""
    if not isinstance(name, str):
        raise TypeError(f"a resource name is a str: {name!r}")
    data = name.encode()
    longest = RESOURCE_MAX if slots is None else RESOURCE_MAX - 1 - len(str(slots))
    if not data:
        raise ValueError("a resource name must not be empty")
    if _RESOURCE.fullmatch(data) is None:
        raise ValueError(f"a resource name has no spaces or control characters: {name!r}")
    if len(data) > longest:
        raise ValueError(f"a resource name has at most {longest} bytes: {name!r}")
    return data


def check_label(label: str) -> bytes:
    if _LABEL.fullmatch(label) is None:
        raise ValueError("name must be 1 to 32 characters of A-Z a-z 0-9 _ . : -")
    return label.encode()


def check_secret(secret: str) -> bytes:
    if not isinstance(secret, str):
        raise TypeError("secret is a str")
    data = secret.encode()
    if _SECRET.fullmatch(data) is None:
        raise ValueError("the secret must have 1 to 256 bytes and no spaces")  # never show it
    return data


def to_ns(seconds: float, what: str) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{what} must be a number of seconds")
    if not 0 <= seconds <= 1e9:  # NaN, too
        raise ValueError(f"{what} must be between 0 and 1e9 seconds, not {seconds}")
    return round(seconds * 1_000_000) * 1000


def ttl_to_ms(ttl: float) -> int:
    ms = to_ns(ttl, "ttl") // NS_PER_MS
    if ms < 1:
        raise ValueError("ttl must be at least a millisecond")
    return ms


class LockOptions(NamedTuple):
    """What the caller wants. The names are in the order of their bytes."""

    resources: Tuple[bytes, ...]
    ttl_ms: int
    wait_ns: int  # 0: do not wait; NEVER: no limit
    fence: bool
    hold: bool
    linger: bool
    extends: bool  # the client extends the lock as long as it is held
    slots: Optional[int]
    words: bytes  # the options of LOCK but WAIT


def lock_options(
    resources: Union[str, Iterable[str]],
    ttl: float,
    wait: Optional[float],
    fence: bool,
    hold: bool,
    linger: bool,
    auto_extend: bool,
    slots: Optional[int],
) -> LockOptions:
    """Raises ValueError or TypeError if an argument is wrong."""
    if slots is not None and not (type(slots) is int and 1 <= slots <= SLOTS_MAX):
        raise ValueError(f"slots must be between 1 and {SLOTS_MAX}")
    if linger and not hold:
        raise ValueError("linger needs hold")
    names = [resources] if isinstance(resources, str) else list(resources)
    checked = sorted({check_resource(name, slots) for name in names})
    if not checked:
        raise ValueError("at least one resource is necessary")
    words = b"" if slots is None else b" SLOTS %d" % slots
    words += b" FENCE" if fence else b""
    words += b" HOLD" if hold else b""
    words += b" LINGER" if linger else b""
    wait_ns = NEVER if wait is None or wait == math.inf else to_ns(wait, "wait")
    return LockOptions(
        tuple(checked), ttl_to_ms(ttl), wait_ns, fence, hold, linger, auto_extend or hold, slots,
        words,
    )  # fmt: skip


def lock_line(options: LockOptions, resource: bytes, wait_ns: int) -> bytes:
    line = b"LOCK %b %d%b" % (resource, options.ttl_ms, options.words)
    wait_ms = min(wait_ns // NS_PER_MS, WAIT_MAX_MS)
    return line + b" WAIT %d" % wait_ms if wait_ms > 0 else line


# --- replies ---


class Grant(NamedTuple):
    """OK to LOCK or EXTEND."""

    token: bytes
    validity_ns: int
    elapsed_ns: int
    fence: Optional[int]
    resource: bytes  # the name of the slot, with SLOTS


def _number(words: List[bytes], at: int, most: int) -> int:
    # int() alone would accept signs and underscores.
    if len(words) <= at or not words[at].isdigit() or len(words[at]) > 18:
        raise Garbled("a number is missing")
    number = int(words[at])
    if number > most:
        raise Garbled("a number is too large")
    return number


def _token_of(words: List[bytes]) -> bytes:
    if len(words) < 3 or not _TOKEN(words[2]):
        raise Garbled("a token is missing")
    return words[2]


def parse_granted(words: List[bytes], options: LockOptions, resource: bytes) -> Grant:
    """words: #TAG OK TOKEN VALIDITY ELAPSED FENCE [SLOT]"""
    token = _token_of(words)
    validity_ms = _number(words, 3, options.ttl_ms)
    elapsed_ms = _number(words, 4, 1 << 50)
    if len(words) < 6:
        raise Garbled("the fencing token is missing")
    fence = None
    if words[5] != b"-":
        fence = _number(words, 5, FENCE_MAX)
    elif options.fence:
        raise Garbled("the fencing token is missing")
    if options.slots is not None:
        resource = _slot_of(words, resource, options.slots)
    return Grant(token, validity_ms * NS_PER_MS, elapsed_ms * NS_PER_MS, fence, resource)


def _slot_of(words: List[bytes], resource: bytes, slots: int) -> bytes:
    slot = words[6] if len(words) > 6 else b""
    name, _, number = slot.rpartition(b"#")
    if name != resource or _number([number], 0, slots) < 1:
        raise Garbled("the slot is missing")
    return slot


def parse_extended(words: List[bytes], token: bytes, ttl_ms: int) -> Grant:
    """words: #TAG OK TOKEN VALIDITY ELAPSED"""
    if _token_of(words) != token:
        raise Garbled("the reply has another token")
    validity_ns = _number(words, 3, ttl_ms) * NS_PER_MS
    return Grant(token, validity_ns, _number(words, 4, 1 << 50) * NS_PER_MS, None, b"")


def deadline_ns(grant: Grant, sent_ns: int, received_ns: int) -> int:
    """Until when a granted lock is safe.

    The daemon granted it elapsed_ns after it had read the request, so not before sent_ns +
    elapsed_ns, and the validity counts from the grant. If that moment were after the arrival of
    the reply, elapsed_ns could not be true, and the validity counts from the arrival.
    """
    return min(sent_ns + grant.elapsed_ns, received_ns) + grant.validity_ns


def text(words: List[bytes]) -> str:
    """For messages. The bytes come from the peer, and a program can print them on a terminal."""
    return b" ".join(words).decode("ascii", "replace").replace("\ufffd", "?")


def failure(words: List[bytes], resource: bytes) -> RedlockError:
    """The error for a reply that is not OK, to LOCK or EXTEND. words: #TAG OUTCOME ..."""
    outcome, rest, name = words[1], words[2:], resource.decode()
    if outcome == b"HELD":
        hint = None if rest[:1] == [b"-1"] else _number(rest, 0, 1 << 50) / 1000
        return NotAcquired(f"another client holds {name}", hint)
    if outcome == b"NOQUORUM":
        reasons: Dict[str, str] = {}
        for word in rest[2:]:
            node, _, reason = word.decode("ascii", "replace").rpartition(":")
            reasons[node] = reason
        return NoQuorum(f"{name}: too few masters could vote: {text(rest)}", reasons)
    if outcome == b"LATE":
        return NotAcquired(f"{name}: the masters answered too late for any validity to be left")
    if outcome == b"LIMIT":
        return Unavailable(f"a limit of the daemon is reached: {text(rest)}", text(rest))
    if outcome == b"SHUTDOWN":
        return Unavailable("the daemon is stopping")
    if outcome == b"DENIED":
        unknown = rest[:2] == [b"authenticate", b"first:"]
        advice = "; set secret or secret_file" if unknown else ""
        return Denied(f"access denied: {text(rest)}{advice}")
    if outcome == b"ERR" and rest:
        return Rejected(text(rest[:1]), text(rest[1:]))
    raise Garbled("unknown reply")


# Why a lock is lost, by Lost.reason: first the reasons of LOST, then those of this client.
_LOSSES = {
    "noquorum": "too few masters could vote",
    "late": "the masters answered too late",
    "gone": "the token does not hold it any more",
    "limit": "it was held for as long as the daemon allows (max_hold)",
    "overdue": "the daemon was stopped or too busy",
    "shutdown": "the daemon is stopping",
    "closed": "the connection has ended",
    "expired": "its time is over",
    "forked": "the process has forked",
    "released": "it was never acquired, or has been unlocked",
    "unextended": "not extended in time",
}

# The limits at which the daemon does not extend a lock any more, by the reply to EXTEND.
LIMITS = {
    "hold": _LOSSES["limit"],
    "extensions": "it was extended as often as the daemon allows (max_extensions)",
}


def explain_loss(reason: str) -> str:
    return _LOSSES.get(reason, reason)


def seconds(ns: int) -> float:
    return ns / NS_PER_S
