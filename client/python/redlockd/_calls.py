"""Sessions, calls and leases: the objects of the engine (_engine.py). Pure.

Each of them handles its own events, and calls the engine for what concerns the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Tuple

from . import _protocol
from ._clock import NS_PER_MS, NS_PER_S
from ._protocol import NEVER, Garbled, LockOptions
from .errors import Denied, NotAcquired, RedlockError

if TYPE_CHECKING:
    from ._engine import Engine

# A LOCK that found no lock before the end of its wait is sent again after this pause. So is an UNLOCK
# that met a limit of the daemon.
AGAIN_NS = 250 * NS_PER_MS
# WAIT is rounded down to milliseconds, so HELD can come just before the end of the wait.
LAST_NS = 10 * NS_PER_MS
GIVE_UP_MARGIN_MAX_NS = 1 * NS_PER_S
ATTEMPT_MIN_NS = 100 * NS_PER_MS

OPENING, OPEN, QUITTING, CLOSED = range(4)
HELD, LOST, RELEASED = range(3)


class Timed:
    """An object whose on_due() the engine calls at due_ns. See Engine.at()."""

    __slots__ = ("due_ns", "timer")

    def __init__(self) -> None:
        self.due_ns = NEVER
        self.timer = 0  # its number in Engine._timers, if due_ns is not NEVER

    def on_due(self, engine: Engine, now: int) -> None:
        raise NotImplementedError


# --- sessions ---


class Session(Timed):
    __slots__ = (
        "address", "state", "pending", "live", "abandoned", "holds", "out", "partial", "tags",
        "last_input_ns", "pinged", "last_line", "deaf",
    )  # fmt: skip

    def __init__(self, address: int) -> None:
        super().__init__()
        self.address = address
        self.state = OPENING
        self.pending: Dict[bytes, Call] = {}  # by tag
        self.live = 0  # pending calls that have not been given up
        self.abandoned = 0  # pending LOCKs that have been given up
        self.holds: Dict[bytes, Lease] = {}  # by token: a clean end would release these
        self.out: List[bytes] = []
        self.partial = b""  # an incomplete line
        self.tags = 0
        self.last_input_ns = 0
        self.pinged = False
        self.last_line = ""  # a line without a tag, after which the daemon closes
        self.deaf = False  # the peer has sent nonsense, so its input does not count any more

    def take_output(self) -> bytes:
        output = b"".join(self.out)
        self.out.clear()
        return output

    def on_due(self, engine: Engine, now: int) -> None:
        if self.state == OPENING:
            engine.io.close(self)
            engine.on_closed(self, "no answer in time", now)
        elif self.state == QUITTING:
            engine.io.close(self)
            engine.on_closed(self, "", now)
        elif self.live > 0:
            # A waiting LOCK may have no reply for hours. PING shows whether the daemon lives.
            quiet_ns = now - self.last_input_ns
            if quiet_ns >= engine.timeout_ns and not self.pinged:
                self.pinged = True
                engine.send(self, Ping(), now)
            engine.at(self, now + engine.timeout_ns)


# --- calls ---


class Call(Timed):
    """A request. It is in the queue, pending in a session, or neither when it is finished."""

    __slots__ = ("session", "tag", "sent_ns")
    wanted = True  # False: what is left of a request that was given up

    def __init__(self) -> None:
        super().__init__()
        self.session: Optional[Session] = None
        self.tag = b""
        self.sent_ns = 0

    def line(self, now: int) -> bytes:
        raise NotImplementedError

    def reply_due_ns(self, engine: Engine, now: int) -> int:
        """Until when to wait for the reply to the line that is sent now."""
        raise NotImplementedError

    def queue_due_ns(self, engine: Engine, now: int) -> int:
        """Until when to wait in the queue for a session."""
        return self.reply_due_ns(engine, now)

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        """The reply: words[0] is the tag. The call is no longer pending. Raises Garbled."""
        raise NotImplementedError

    def on_broken(self, engine: Engine, error: RedlockError, now: int) -> None:
        """The session was lost before the reply. The call is no longer pending."""
        self.fail(engine, error, now)

    def on_unreachable(self, engine: Engine, error: RedlockError, now: int) -> None:
        """No address could be reached. The call is still in the queue."""

    def on_due(self, engine: Engine, now: int) -> None:
        """There was no session, or no reply, in time."""
        error = engine.no_reply(self, now)
        self.fail(engine, error, now)

    def fail(self, engine: Engine, error: RedlockError, now: int) -> None:
        """Finish with this error."""
        raise NotImplementedError

    def stub(self) -> Call:
        """What stays pending in place of this call when it is given up."""
        return IGNORED


class _Ignored(Call):
    """A request whose reply does not matter any more."""

    __slots__ = ()
    wanted = False

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        pass

    def on_broken(self, engine: Engine, error: RedlockError, now: int) -> None:
        pass


IGNORED = _Ignored()


class AbandonedLock(Call):
    """A given-up LOCK. If it is granted after all, it is released."""

    __slots__ = ("resource", "options", "of")
    wanted = False

    def __init__(self, resource: bytes, options: LockOptions, of: Optional[Session]) -> None:
        super().__init__()
        self.resource, self.options, self.of = resource, options, of

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        if self.of is not None:
            self.of.abandoned -= 1
        if words[1] != b"OK":
            return
        grant = _protocol.parse_granted(words, self.options, self.resource)
        pin = self.of if self.options.hold else None
        engine.unlock_token(grant.resource, grant.token, self.options.ttl_ms, pin, now)

    def on_broken(self, engine: Engine, error: RedlockError, now: int) -> None:
        pass


class Greeting(Call):
    """AUTH, NAME and PING, with which a session begins. It is open when PONG has come."""

    __slots__ = ("verb",)

    def __init__(self, verb: bytes) -> None:
        super().__init__()
        self.verb = verb

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        session = self.session
        if session is None or session.state != OPENING:
            return
        if words[1] == b"PONG" and self.verb == b"PING":
            engine.on_open(session, now)
        elif words[1] == b"DENIED" and self.verb == b"AUTH":
            engine.on_denied(session, Denied(_protocol.text(words[2:])), now)
        elif words[1] == b"LIMIT" or words[1] == b"SHUTDOWN":
            engine.io.close(session)
            engine.on_closed(session, _protocol.text(words[1:]), now)
        elif words[1] != b"OK" and self.verb != b"NAME":
            raise Garbled("unknown reply")

    def fail(self, engine: Engine, error: RedlockError, now: int) -> None:
        pass


class Ping(Call):
    __slots__ = ()

    def line(self, now: int) -> bytes:
        return b"PING"

    def reply_due_ns(self, engine: Engine, now: int) -> int:
        return now + engine.timeout_ns

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        if self.session is not None:
            self.session.pinged = False

    def fail(self, engine: Engine, error: RedlockError, now: int) -> None:
        if self.session is not None:
            self.session.pinged = False


Done = Callable[["Outcome", int], None]


class Failed:
    """What may have an error for the caller."""

    __slots__ = ("error",)
    error: Optional[RedlockError]

    def take_error(self) -> RedlockError:
        """To raise it. An error that was raised refers to the function, with all its variables. If
        one of these referred to the error, all of them would live until a collection."""
        error, self.error = self.error, None
        assert error is not None
        return error


class Outcome(Failed):
    """The end of a TokenCall."""

    __slots__ = ("word", "deadline_ns")

    def __init__(self, word: bytes, deadline_ns: int, error: Optional[RedlockError]) -> None:
        self.word = word  # b"OK", b"GONE", or b"" with an error
        self.deadline_ns = deadline_ns  # after OK to EXTEND
        self.error = error


class TokenCall(Call):
    """EXTEND (with a TTL) or UNLOCK (without) of a token. If the connection breaks before the
    reply, the outcome is unknown, and the request is sent again.

    pin: the session of the HOLD. EXTEND is sent there only: it must not seem to continue a HOLD
    whose connection is lost. UNLOCK is sent there first, because that also ends the HOLD. If UNLOCK
    fails, only the end of that session ends the HOLD.
    """

    __slots__ = (
        "resource", "token", "ttl_ms", "gives_up_ns", "attempt_ns", "pin", "hold_of", "done",
        "late", "repeated", "paused", "trouble",
    )  # fmt: skip

    def __init__(
        self,
        resource: bytes,
        token: bytes,
        ttl_ms: Optional[int],
        gives_up_ns: int,
        attempt_ns: int,
        pin: Optional[Session],
        done: Done,
    ) -> None:
        super().__init__()
        self.resource, self.token, self.ttl_ms = resource, token, ttl_ms
        self.gives_up_ns, self.attempt_ns = gives_up_ns, attempt_ns
        self.pin, self.hold_of = pin, pin
        self.done: Optional[Done] = done  # None: it has ended
        self.late: Optional[Done] = None  # EXTEND: takes a reply that comes after the next attempt
        self.repeated = False  # an earlier attempt may have been carried out
        self.paused = False
        self.trouble = ""  # why the last attempt failed

    def line(self, now: int) -> bytes:
        if self.ttl_ms is None:
            return b"UNLOCK %b %b" % (self.resource, self.token)
        return b"EXTEND %b %b %d" % (self.resource, self.token, self.ttl_ms)

    def reply_due_ns(self, engine: Engine, now: int) -> int:
        return min(now + self.attempt_ns, self.gives_up_ns)

    def queue_due_ns(self, engine: Engine, now: int) -> int:
        return self.gives_up_ns

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        word = words[1]
        if word == b"OK":
            deadline_ns = 0
            if self.ttl_ms is not None:
                grant = _protocol.parse_extended(words, self.token, self.ttl_ms)
                deadline_ns = _protocol.deadline_ns(grant, self.sent_ns, now)
            self._end(Outcome(word, deadline_ns, None), now)
        elif word == b"GONE":
            was_unlocked = self.ttl_ms is None and self.repeated
            self._end(Outcome(b"OK" if was_unlocked else word, 0, None), now)
        else:
            error = _protocol.failure(words, self.resource)
            if word == b"SHUTDOWN" and self.session is not None:
                engine.drain(self.session, now)
                self.on_broken(engine, error, now)
            elif word == b"LIMIT" and self.ttl_ms is None and now + AGAIN_NS < self.gives_up_ns:
                self.paused = True
                engine.at(self, now + AGAIN_NS)
            else:
                self.fail(engine, error, now)

    def on_broken(self, engine: Engine, error: RedlockError, now: int) -> None:
        if self.done is None:
            pass  # the same error has ended its Acquire, which releases the token
        elif (self.pin is not None and self.ttl_ms is not None) or now >= self.gives_up_ns:
            self.fail(engine, error, now)
        else:
            self.pin, self.trouble, self.repeated = None, str(error), True
            engine.submit(self, now)

    def on_due(self, engine: Engine, now: int) -> None:
        if self.paused:
            self.paused = False
            # The limit has undone nothing, but the end of a connection releases its HOLDs.
            self.repeated |= self.pin is not None and self.pin.state != OPEN
            engine.submit(self, now)
        else:
            error = engine.no_reply(self, now)
            self.on_broken(engine, error, now)

    def on_unreachable(self, engine: Engine, error: RedlockError, now: int) -> None:
        self.trouble = str(error)

    def stub(self) -> Call:
        return IGNORED if self.late is None else _LateExtend(self)

    def fail(self, engine: Engine, error: RedlockError, now: int) -> None:
        if self.ttl_ms is None and self.hold_of is not None:
            engine.leave(self.hold_of, now)
        self._end(Outcome(b"", 0, error), now)

    def _end(self, outcome: Outcome, now: int) -> None:
        done, self.done = self.done, None
        if done is not None:
            done(outcome, now)


class _LateExtend(Call):
    """An EXTEND that was sent again, or given up. If the masters are slow, its OK can still come in
    time. And GONE counts at any time."""

    __slots__ = ("call", "was_sent_ns")
    wanted = False

    def __init__(self, call: TokenCall) -> None:
        super().__init__()
        self.call, self.was_sent_ns = call, call.sent_ns

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        call = self.call
        if call.ttl_ms is None or call.late is None:
            return
        if words[1] == b"GONE":
            call.late(Outcome(b"GONE", 0, None), now)
        elif words[1] == b"OK":
            grant = _protocol.parse_extended(words, call.token, call.ttl_ms)
            deadline_ns = _protocol.deadline_ns(grant, self.was_sent_ns, now)
            call.late(Outcome(b"OK", deadline_ns, None), now)

    def on_broken(self, engine: Engine, error: RedlockError, now: int) -> None:
        pass


class Acquire(Call):
    """Acquires the resources one after the other, all or none.

    done(leases, error): one of the two is None. on_lost(lease): a lease was lost, possibly before
    all resources were acquired.
    """

    __slots__ = (
        "options", "done", "on_lost", "leases", "began_ns", "ends_ns", "paused", "confirm", "finished",
        "engine",
    )  # fmt: skip

    def __init__(
        self,
        options: LockOptions,
        done: Callable[[Optional[List[Lease]], Optional[RedlockError]], None],
        on_lost: Callable[[Lease], None],
    ) -> None:
        super().__init__()
        self.options, self.done, self.on_lost = options, done, on_lost
        self.leases: List[Lease] = []
        self.began_ns = 0
        self.ends_ns = NEVER  # the end of the wait
        self.paused = False
        self.confirm: Optional[TokenCall] = None  # EXTEND of a grant that came too late
        self.finished = False
        self.engine: Optional[Engine] = None

    def start(self, engine: Engine, now: int) -> None:
        if self.finished:
            return  # cancelled before
        self.engine = engine
        self.began_ns = now
        self.ends_ns = min(now + self.options.wait_ns, NEVER - 1)
        engine.submit(self, now)

    def resource(self) -> bytes:
        return self.options.resources[len(self.leases)]

    def line(self, now: int) -> bytes:
        return _protocol.lock_line(self.options, self.resource(), self.ends_ns - now)

    def reply_due_ns(self, engine: Engine, now: int) -> int:
        return max(now, self.ends_ns) + engine.timeout_ns

    def queue_due_ns(self, engine: Engine, now: int) -> int:
        return self.ends_ns if self.options.wait_ns > 0 else now + engine.timeout_ns

    def on_reply(self, engine: Engine, words: List[bytes], now: int) -> None:
        word = words[1]
        if word == b"OK":
            self._on_granted(engine, words, now)
            return
        error = _protocol.failure(words, self.resource())
        if word == b"SHUTDOWN" and self.session is not None:
            engine.drain(self.session, now)
            self.on_broken(engine, error, now)
        elif word in (b"HELD", b"LATE") and now < self.ends_ns - LAST_NS:
            # The longest WAIT is over, or the TTL was too short for one round.
            self.paused = True
            engine.at(self, min(now + AGAIN_NS, self.ends_ns - LAST_NS))
        else:
            self.fail(engine, error, now)

    def _on_granted(self, engine: Engine, words: List[bytes], now: int) -> None:
        options = self.options
        grant = _protocol.parse_granted(words, options, self.resource())
        lease = Lease(grant, options, self.session, self._on_lost)
        lease.deadline_ns = _protocol.deadline_ns(grant, self.sent_ns, now)
        self.leases.append(lease)
        if lease.hold and self.session is not None:
            self.session.holds[lease.token] = lease
        if lease.deadline_ns > now:
            self._next(engine, now)
            return
        # After a long wait the grant can arrive past its deadline, although the masters still
        # have the lock. EXTEND shows whether they do.
        self.confirm = TokenCall(
            lease.resource, lease.token, lease.ttl_ms, now + engine.timeout_ns, engine.timeout_ns,
            lease.session, lambda outcome, at: self._confirmed(engine, outcome, at),
        )  # fmt: skip
        engine.submit(self.confirm, now)

    def _confirmed(self, engine: Engine, outcome: Outcome, now: int) -> None:
        self.confirm = None
        lease = self.leases[-1]
        lease.deadline_ns = outcome.deadline_ns
        if outcome.word == b"OK" and lease.deadline_ns > now and lease.state == HELD:
            self._next(engine, now)
        else:
            name = lease.resource.decode()
            self.fail(engine, NotAcquired(f"{name}: the grant arrived after its deadline"), now)

    def _on_lost(self, lease: Lease) -> None:
        if not self.finished and self.engine is not None:
            self.engine.at(_LostEarly(self, lease), 0)  # not now: the engine is busy
        self.on_lost(lease)

    def lost_early(self, engine: Engine, lease: Lease, now: int) -> None:
        """A lease was lost while the later ones are being acquired: their wait is useless."""
        if self.finished:
            return
        engine.forget(self, now)
        if self.confirm is not None:
            engine.forget(self.confirm, now)
        error = NotAcquired(f"{lease.resource.decode()} was lost during the wait: {lease.text}")
        self.fail(engine, error, now)

    def _next(self, engine: Engine, now: int) -> None:
        several = len(self.options.resources) > 1
        engine.add_lease(self.leases[-1], several, now)
        if len(self.leases) < len(self.options.resources):
            engine.submit(self, now)
            return
        if several:
            # While the later ones were acquired, the engine has extended the earlier ones.
            for lease in self.leases:
                engine.expire(lease, now)
                if lease.state != HELD:
                    error = NotAcquired(f"{lease.resource.decode()} was lost during the wait")
                    self.fail(engine, error, now)
                    return
                lease.extends = self.options.extends
                lease.schedule(engine)
        self.finished = True
        for lease in self.leases:
            lease.on_lost = self.on_lost  # no cycle keeps the client alive until a collection
        self.done(self.leases, None)

    def on_broken(self, engine: Engine, error: RedlockError, now: int) -> None:
        # The daemon undoes the LOCK.
        if now >= self.ends_ns + (0 if self.options.wait_ns > 0 else engine.timeout_ns):
            self.fail(engine, error, now)
        else:
            engine.submit(self, now)

    def on_unreachable(self, engine: Engine, error: RedlockError, now: int) -> None:
        # A daemon that was never reached may be starting, or its address is wrong.
        tries = engine.was_open or now < self.began_ns + engine.timeout_ns
        if self.options.wait_ns == 0 or not tries:
            engine.forget(self, now)
            self.fail(engine, error, now)

    def on_due(self, engine: Engine, now: int) -> None:
        if self.paused:
            self.paused = False
            engine.submit(self, now)
        else:
            self.fail(engine, engine.no_reply(self, now), now)

    def stub(self) -> Call:
        return AbandonedLock(self.resource(), self.options, self.session)

    def fail(self, engine: Engine, error: RedlockError, now: int) -> None:
        self.finished = True
        leases, self.leases = self.leases, []
        engine.release(leases, None, now)
        self.done(None, error)

    def cancel(self, engine: Engine, now: int) -> None:
        """Gives up. Whatever was or will be granted is released. done() is not called."""
        if self.confirm is not None:
            engine.forget(self.confirm, now)
        elif not self.finished:
            engine.forget(self, now)
        self.finished = True
        engine.release(self.leases, None, now)


class _LostEarly(Timed):
    """Tells an Acquire of a lost lease, soon."""

    __slots__ = ("acquire", "lease")

    def __init__(self, acquire: Acquire, lease: Lease) -> None:
        super().__init__()
        self.acquire, self.lease = acquire, lease

    def on_due(self, engine: Engine, now: int) -> None:
        self.acquire.lost_early(engine, self.lease, now)


# --- leases ---


def ignore_loss(lease: Lease) -> None:
    pass


class Lease(Timed):
    """A granted lock."""

    __slots__ = (
        "resource", "token", "fence", "ttl_ms", "deadline_ns", "hold", "linger", "session",
        "extends", "state", "reason", "text", "on_lost", "extension", "extensions", "retry_ns",
        "trouble", "limit",
    )  # fmt: skip

    def __init__(
        self,
        grant: _protocol.Grant,
        options: LockOptions,
        session: Optional[Session],
        on_lost: Callable[[Lease], None],
    ) -> None:
        super().__init__()
        self.resource, self.token, self.fence = grant.resource, grant.token, grant.fence
        self.ttl_ms = options.ttl_ms
        self.deadline_ns = 0  # 0: another client may have the lock
        self.hold, self.linger = options.hold, options.linger
        self.session = session if options.hold else None
        self.extends = options.extends
        self.state = HELD
        self.reason, self.text = "", ""  # once lost: why, for programs and for people
        self.on_lost = on_lost
        self.extension: Optional[TokenCall] = None  # by the engine
        self.extensions: List[TokenCall] = []  # all that are under way, also by the caller
        self.retry_ns = 0  # no EXTEND before this time
        self.trouble = ""  # why the last EXTEND failed
        self.limit: Optional[str] = None  # the limit of the daemon that it has met

    def give_up_ns(self) -> int:
        """When the lock counts as lost, unless it is extended."""
        if not self.extends:
            return self.deadline_ns
        margin_ns = min(self.ttl_ms * NS_PER_MS // 10, GIVE_UP_MARGIN_MAX_NS)
        return self.deadline_ns - margin_ns

    def extend_ns(self) -> int:
        """When to extend the lock: when a third of its TTL has passed."""
        return max(self.deadline_ns - self.ttl_ms * NS_PER_MS * 2 // 3, self.retry_ns)

    def attempt_ns(self, engine: Engine) -> int:
        """For how long to wait for the reply to an EXTEND before it is sent again."""
        return min(max(self.ttl_ms * NS_PER_MS // 6, ATTEMPT_MIN_NS), engine.timeout_ns)

    def schedule(self, engine: Engine) -> None:
        due_ns = self.give_up_ns()
        if self.extends and self.extension is None:
            due_ns = min(due_ns, self.extend_ns())
        engine.at(self, due_ns)

    def on_due(self, engine: Engine, now: int) -> None:
        if self.state != HELD:
            # The work under a lost HOLD has ended by now, so its session may end as well.
            engine.drop_hold(self, now)
        elif now >= self.give_up_ns():
            engine.expire(self, now)
        else:
            if self.extends and self.extension is None and now >= self.extend_ns():
                engine.extend(self, self.ttl_ms, None, now)
            if self.state == HELD:
                self.schedule(engine)

    def why_expired(self) -> Tuple[str, str]:
        """Why the lock was not extended: for programs, and for people."""
        if self.state == LOST:  # just now, by another thread
            return self.reason, self.text
        extension = self.extension  # another thread may end it meanwhile
        trouble = (extension.trouble if extension is not None else "") or self.trouble
        reason = "unextended" if self.extends else "expired"
        text = _protocol.explain_loss(reason)
        if not self.extends:
            return reason, text
        if trouble:
            text += f": {trouble}"
        return reason, _protocol.LIMITS.get(self.limit or "", text)
