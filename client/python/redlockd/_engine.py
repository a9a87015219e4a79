"""The logic of both clients: connections, requests, locks and their deadlines. Pure.

The engine has no socket, no thread and no clock. The client that owns it (_sync.py, _aio.py) calls
it with each event and the time, and carries out what the engine asks of its Io. Times are
nanoseconds of _clock.now_ns().

    a call (LOCK, EXTEND, UNLOCK) --> queue --> session --> reply --> outcome, or again
    a lease: a granted lock until its end, by UNLOCK or by loss

Sessions. A session is one connection. The current session takes new requests. A session that is
no longer current (the daemon stops, falls silent, or has too many requests) drains: it stays as
long as requests or HOLDs need it, and then ends with QUIT. A clean end releases HOLDs at once, so
the engine never closes a session with a HOLD whose work may still be running.

Requests that have no reply. A reply can come late, so the tag of a request that was given up stays
reserved. If a given-up LOCK is granted after all, the engine sends UNLOCK. If no other request
needs the session, the engine also sends QUIT: the daemon then undoes the LOCK at once, and the end
of the connection shows that no grant is in transit. UNLOCK and EXTEND are sent again, with the same
token.

Losses. A lease is lost when the daemon says so (GONE, LOST), when a HOLD loses its connection, and
when its deadline comes. A lease that is extended is given up somewhat before its deadline, so that
the work can stop in time. A loss is final: a later OK changes nothing.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from typing import Callable, Deque, Dict, Iterable, List, Optional, Protocol, Sequence, Set, Tuple

from . import _protocol
from ._calls import (
    CLOSED, HELD, IGNORED, LOST, OPEN, OPENING, QUITTING, RELEASED, AbandonedLock, Call, Done,
    Greeting, Lease, Outcome, Session, Timed, TokenCall, ignore_loss,
)  # fmt: skip
from ._clock import NS_PER_MS, NS_PER_S
from ._protocol import NEVER, Garbled
from .errors import Denied, RedlockError, Unavailable

# The daemon accepts 1024 pending requests on a connection. The rest is for EXTEND and UNLOCK of the
# HOLDs of a session that drains.
SESSION_REQUESTS = 1000
# So many given-up LOCKs may wait on a session. With more of them, new requests use a new session.
SESSION_ABANDONED = 100

BACKOFF_MIN_NS = 50 * NS_PER_MS
BACKOFF_MAX_NS = 1 * NS_PER_S
# For how long another address is preferred to one that has failed.
AVOID_NS = 5 * NS_PER_S
EXTEND_AGAIN_MAX_NS = 500 * NS_PER_MS
QUIT_NS = 1 * NS_PER_S


def _is_unlock(call: Timed) -> bool:
    return isinstance(call, TokenCall) and call.ttl_ms is None


class Io(Protocol):
    """What the engine asks of its owner. None of the functions may call the engine."""

    def connect(self, session: Session) -> None:
        """Open a connection to engine.addresses[session.address]; then engine.on_connected() or
        engine.on_closed()."""

    def flush(self, session: Session) -> None:
        """Send session.take_output() soon."""

    def close(self, session: Session) -> None:
        """Close the connection, or stop opening it. No call of the engine follows."""

    def warn(self, text: str) -> None:
        """Log a warning."""


class Engine(Timed):
    """See the top of this file. Not thread-safe."""

    def __init__(
        self, addresses: Sequence[str], label: Optional[bytes], timeout_ns: int, io: Io
    ) -> None:
        super().__init__()
        self.addresses, self.label, self.timeout_ns, self.io = addresses, label, timeout_ns, io
        self.sessions: Set[Session] = set()
        self.current: Optional[Session] = None
        self.queue: Deque[Call] = deque()
        self.leases: Set[Lease] = set()
        self.closed = False  # sends nothing but UNLOCK
        self.ended = False  # sends nothing
        self.failure: Optional[BaseException] = None  # why it was closed, unless by close()
        self.was_open = False
        # The heap has due_ns and number of each timer, also of some that were stopped. Those must not
        # refer to their objects, which would keep locks and clients alive.
        self._heap: List[Tuple[int, int]] = []
        self._timers: Dict[int, Timed] = {}
        self._numbers = itertools.count()
        self._tried: Dict[int, str] = {}  # addresses that failed in this pass, and why
        self._denied: Optional[Denied] = None  # an address of this pass refused the secret
        self._avoid_until_ns = [0] * len(addresses)
        self._passes = 0  # passes over all addresses that failed in a row
        self._backoff_until_ns = 0
        self._trouble = "no daemon was reached in time: " + ", ".join(addresses)

    # --- time ---

    def at(self, timed: Timed, due_ns: int) -> None:
        """Calls timed.on_due() at this time, and not at the time that was set before."""
        if timed.due_ns != NEVER:
            del self._timers[timed.timer]
        timed.due_ns, timed.timer = due_ns, next(self._numbers)
        self._timers[timed.timer] = timed
        heapq.heappush(self._heap, (due_ns, timed.timer))
        if len(self._heap) > 2 * len(self._timers) + 64:
            self._heap = [entry for entry in self._heap if entry[1] in self._timers]
            heapq.heapify(self._heap)

    def stop_timer(self, timed: Timed) -> None:
        if timed.due_ns != NEVER:
            timed.due_ns = NEVER
            del self._timers[timed.timer]
            if not self._timers:
                self._heap.clear()

    def next_ns(self) -> int:
        """When on_time() must be called; NEVER if it need not. May be too early."""
        return self._heap[0][0] if self._timers else NEVER

    def on_time(self, now: int) -> None:
        while self._heap and self._heap[0][0] <= now:
            _, number = heapq.heappop(self._heap)
            timed = self._timers.get(number)
            if timed is not None:
                self.stop_timer(timed)
                timed.on_due(self, now)

    def on_due(self, engine: Engine, now: int) -> None:
        """The pause after a failed pass over the addresses is over."""
        if self.queue:
            self._connect(now)

    # --- calls ---

    def submit(self, call: Call, now: int) -> None:
        """Sends the request, or queues it until a session is open."""
        pin = call.pin if isinstance(call, TokenCall) else None
        session = self.current
        if session is not None and len(session.pending) >= SESSION_REQUESTS:
            session = self.current = None  # it drains
        if pin is not None and pin.state == OPEN:
            session = pin
        if self.ended or (self.closed and not _is_unlock(call)):
            call.fail(self, self.closed_error(), now)
        elif session is not None and session.state == OPEN:
            self.send(session, call, now)
        else:
            call.session = None
            self.queue.append(call)
            self.at(call, call.queue_due_ns(self, now))
            self._connect(now)

    def send(self, session: Session, call: Call, now: int) -> None:
        session.tags += 1
        tag = b"#%d" % session.tags
        self._push(session, call, tag, call.line(now), now)
        self.io.flush(session)
        self.at(call, call.reply_due_ns(self, now))
        if session.due_ns == NEVER:
            self.at(session, now + self.timeout_ns)

    def _push(self, session: Session, call: Call, tag: bytes, line: bytes, now: int) -> None:
        call.session, call.tag, call.sent_ns = session, tag, now
        session.pending[tag] = call
        session.live += 1
        session.out.append(b"%b %b\n" % (tag, line))

    def forget(self, call: Call, now: int) -> None:
        """Gives up a call without an outcome."""
        self.stop_timer(call)
        session = call.session
        if session is None:
            if call in self.queue:
                self.queue.remove(call)
        elif session.pending.get(call.tag) is call:
            stub = call.stub()
            session.pending[call.tag] = stub
            session.live -= 1
            session.abandoned += isinstance(stub, AbandonedLock)
            self._settle(session, now)

    def no_reply(self, call: Call, now: int) -> RedlockError:
        """Gives up a call that has waited too long. Returns the error."""
        session = call.session
        self.forget(call, now)
        if session is None:
            return Unavailable(self._trouble)
        name = self.addresses[session.address]
        # An EXTEND or UNLOCK may have been given up because the time of its lock was over.
        least_ns = call.attempt_ns if isinstance(call, TokenCall) else 0
        if session.last_input_ns < call.sent_ns and now >= call.sent_ns + least_ns:
            self._retire(session, now)
        return Unavailable(f"{name} has not answered in time")

    # --- sessions ---

    def _connect(self, now: int) -> None:
        if self.current is not None or self.ended:
            return
        if now < self._backoff_until_ns:
            self.at(self, self._backoff_until_ns)
            return
        untried = [n for n in range(len(self.addresses)) if n not in self._tried]
        avoid = self._avoid_until_ns
        address = min(untried, key=lambda n: (avoid[n] > now, n))
        session = Session(address)
        self.sessions.add(session)
        self.current = session
        self.at(session, now + self.timeout_ns // len(self.addresses))
        self.io.connect(session)

    def on_connected(self, session: Session, secret: Optional[bytes], now: int) -> None:
        if session.state != OPENING:
            return
        if secret is not None:
            self._push(session, Greeting(b"AUTH"), b"#auth", b"AUTH " + secret, now)
        if self.label is not None:
            self._push(session, Greeting(b"NAME"), b"#name", b"NAME " + self.label, now)
        # A stopped daemon accepts connections as well. Only a reply shows that it runs.
        self._push(session, Greeting(b"PING"), b"#ping", b"PING", now)
        self.io.flush(session)

    def on_open(self, session: Session, now: int) -> None:
        self.stop_timer(session)
        session.state = OPEN
        self.was_open = True
        self._passes, self._denied = 0, None
        self._tried.clear()
        queue, self.queue = self.queue, deque()
        for call in queue:
            self.stop_timer(call)
            self.submit(call, now)
        if self.closed:
            self._settle(session, now)

    def on_denied(self, session: Session, error: Denied, now: int) -> None:
        """The secret is wrong, or cannot be read. If no other address accepts it, another attempt
        does not help, so all that wait are told."""
        self.io.close(session)
        self._denied = error
        self.on_closed(session, str(error), now)

    def on_closed(self, session: Session, why: str, now: int) -> None:
        """The connection has ended, or could not be opened."""
        was = session.state
        if was == CLOSED:
            return
        self._remove(session)
        name = self.addresses[session.address]
        reason = session.last_line or why or "the connection has ended"
        error = Unavailable(f"{name}: {reason}")
        if was == OPENING:
            self._on_unreachable(session, reason, now)
        elif was == OPEN:
            self._pause(now)
        calls, session.pending = session.pending, {}
        # Before the calls end, so that no thread which waits for one finds the lock still held.
        for lease in list(session.holds.values()):
            # The daemon may have seen a clean end, which releases a HOLD at once.
            self.lose(lease, "closed", now, ended=not lease.linger)
        session.holds.clear()
        for call in calls.values():
            self.stop_timer(call)
            call.on_broken(self, error, now)
        if self.queue:
            self._connect(now)

    def _on_unreachable(self, session: Session, why: str, now: int) -> None:
        """An address has failed: the next one, or all of them have failed."""
        self._tried[session.address] = why
        self._avoid_until_ns[session.address] = now + AVOID_NS
        if len(self._tried) < len(self.addresses):
            return
        reasons = [f"{self.addresses[n]}: {text}" for n, text in sorted(self._tried.items())]
        self._trouble = "no daemon can be reached: " + "; ".join(reasons)
        self._tried.clear()
        self._pause(now)
        denied, self._denied = self._denied, None
        error = denied or Unavailable(self._trouble)
        if denied is not None or self.closed:
            self._fail(self.queue, error, now)
        for call in list(self.queue):
            call.on_unreachable(self, error, now)

    def _pause(self, now: int) -> None:
        """A random pause before the next connection, so that clients do not all come at once."""
        longest = min(BACKOFF_MIN_NS << min(self._passes, 10), BACKOFF_MAX_NS)
        self._passes += 1
        self._backoff_until_ns = now + int(longest * random.uniform(0.5, 1))

    def _remove(self, session: Session) -> None:
        session.state = CLOSED
        self.stop_timer(session)
        self.sessions.discard(session)
        if self.current is session:
            self.current = None

    def drain(self, session: Session, now: int) -> None:
        """The daemon is stopping: new requests go elsewhere."""
        self._avoid_until_ns[session.address] = now + AVOID_NS
        self.leave(session, now)

    def leave(self, session: Session, now: int) -> None:
        """New requests use another session, so this one ends when nothing needs it any more."""
        if self.current is session:
            self.current = None
        self._settle(session, now)

    def _retire(self, session: Session, now: int) -> None:
        """The daemon is silent: all requests go elsewhere. The session stays for its HOLDs."""
        name = self.addresses[session.address]
        self._abandon_all(session, Unavailable(f"{name} has not answered in time"), now)

    def _abandon_all(self, session: Session, error: RedlockError, now: int) -> None:
        """All requests go elsewhere."""
        calls = [call for call in session.pending.values() if call.wanted]
        self.drain(session, now)
        for call in calls:
            self.forget(call, now)
            call.on_broken(self, error, now)

    def _settle(self, session: Session, now: int) -> None:
        """Ends the session if it has served its purpose: no request and no HOLD needs it, and it
        drains, or it has given-up LOCKs, which QUIT undoes, or the client is closed."""
        if session.state != OPEN:
            return
        abandoned = session.abandoned
        if session is self.current and abandoned >= SESSION_ABANDONED:
            self.current = None
        needed = session is self.current and abandoned == 0 and not self.closed
        if session.live > 0 or session.holds or needed:
            return
        if self.current is session:
            self.current = None
        self._quit(session, now)

    def _quit(self, session: Session, now: int) -> None:
        session.state = QUITTING
        session.out.append(b"#quit QUIT\n")
        session.pending[b"#quit"] = IGNORED
        self.io.flush(session)
        self.at(session, now + QUIT_NS)

    def on_bytes(self, session: Session, data: bytes, now: int) -> None:
        """Bytes have arrived. A line counts only with its LF."""
        if session.deaf:
            return
        lines = (session.partial + data if session.partial else data).split(b"\n")
        session.partial = lines.pop()
        session.last_input_ns = now
        pending = session.pending
        try:
            if len(session.partial) > _protocol.REPLY_MAX:
                raise Garbled("the line is too long")
            for line in lines:
                if session.state == CLOSED:
                    return
                words = line.split(b" ")
                call = pending.pop(words[0], None)
                if call is None:
                    self._on_untagged(session, words, now)
                    continue
                if call.wanted:
                    self.stop_timer(call)
                    session.live -= 1
                try:
                    if len(words) < 2:
                        raise Garbled("the reply is empty")
                    call.on_reply(self, words, now)
                except Garbled:
                    call.on_broken(self, Unavailable("the reply makes no sense"), now)
                    raise
                if session is not self.current or self.closed:
                    self._settle(session, now)
        except Garbled as error:
            self._on_garbled(session, f"this is no redlockd: {error}", now)

    def _on_garbled(self, session: Session, why: str, now: int) -> None:
        """The session ends; with HOLDs, only when the work under them must have ended."""
        if not session.holds:
            self.io.close(session)
            self.on_closed(session, why, now)
            return
        session.deaf = True
        self._abandon_all(session, Unavailable(f"{self.addresses[session.address]}: {why}"), now)
        for lease in list(session.holds.values()):
            self.lose(lease, "closed", now, text=why)

    def _on_untagged(self, session: Session, words: List[bytes], now: int) -> None:
        if words[0] == b"!" and len(words) >= 5:
            lease = session.holds.get(words[3])
            if words[1] == b"LOST" and lease is not None:
                reason = _protocol.text(words[4:5])
                session.holds.pop(words[3])
                self.lose(lease, reason, now, ended=reason == "gone")
                self._settle(session, now)
            elif words[1] == b"WARN":
                name, master = _protocol.text(words[2:3]), _protocol.text(words[4:])
                # The logger of last resort adds neither the level nor the name of the logger.
                held = f"redlockd: {name} is still held"
                self.io.warn(f"{held}, but a master lost its vote: {master}")
        elif words[0] in (b"LIMIT", b"DENIED", b"SHUTDOWN", b"ERR"):
            session.last_line = _protocol.text(words)
        elif words[0] != b"!":
            raise Garbled(_protocol.text(words)[:60])

    # --- leases ---

    def add_lease(self, lease: Lease, collecting: bool, now: int) -> None:
        if lease.state != HELD:
            return
        lease.extends = lease.extends or collecting
        self.leases.add(lease)
        lease.schedule(self)

    def extend(self, lease: Lease, ttl_ms: int, done: Optional[Done], now: int) -> None:
        """Extends the lease. done, if given, gets the outcome; a loss is told to on_lost()."""
        by_itself = done is None
        gives_up_ns = lease.give_up_ns()
        if not by_itself:
            gives_up_ns = min(gives_up_ns, now + self.timeout_ns)

        def extended(outcome: Outcome, at: int) -> None:
            lease.extensions.remove(call)
            if by_itself:
                lease.extension = None
            self._extended(lease, ttl_ms, outcome, by_itself, at)
            if done is not None:
                done(outcome, at)

        call = TokenCall(
            lease.resource, lease.token, ttl_ms, gives_up_ns, lease.attempt_ns(self), lease.session,
            extended,
        )  # fmt: skip
        call.late = lambda outcome, at: self._extended(lease, ttl_ms, outcome, by_itself, at)
        lease.extensions.append(call)
        if by_itself:
            lease.extension = call
        if lease.session is not None and lease.session not in self.sessions:
            call.fail(self, Unavailable("the connection has ended"), now)
        else:
            self.submit(call, now)

    def _extended(
        self, lease: Lease, ttl_ms: int, outcome: Outcome, by_itself: bool, now: int
    ) -> None:
        if outcome.word == b"GONE":
            self.lose(lease, "gone", now, ended=True)
        if lease.state != HELD:
            return
        is_over = now >= lease.give_up_ns()
        # An EXTEND that the end of the lease cuts short does not hide what the daemon said before.
        if outcome.error is not None and by_itself and not (is_over and lease.trouble):
            lease.trouble = str(outcome.error)
        if is_over:
            # The work has been told to stop, or is about to be. An OK comes too late.
            self.expire(lease, now)
        elif outcome.word == b"OK":
            lease.retry_ns, lease.trouble, lease.limit = 0, "", None
            if outcome.deadline_ns > lease.deadline_ns:
                lease.deadline_ns, lease.ttl_ms = outcome.deadline_ns, ttl_ms
            lease.schedule(self)
        elif by_itself:
            limit = outcome.error.limit if isinstance(outcome.error, Unavailable) else None
            lease.limit = limit if lease.extends else None
            pause_ns = min(lease.ttl_ms * NS_PER_MS // 30, EXTEND_AGAIN_MAX_NS)
            lease.retry_ns = now + pause_ns
            lease.schedule(self)

    def lose(
        self, lease: Lease, reason: str, now: int, ended: bool = False, text: str = ""
    ) -> None:
        """The lease is lost. reason: see Lost. ended: another client may have the lock already.
        text: the reason for people, if it is not that of explain_loss()."""
        if lease.state == LOST and ended:
            lease.deadline_ns = 0
        if lease.state != HELD:
            return
        lease.state, lease.reason = LOST, reason
        lease.text = text or _protocol.explain_loss(reason)
        if ended:
            lease.deadline_ns = 0
        on_lost, lease.on_lost = lease.on_lost, ignore_loss
        on_lost(lease)
        self._end_lease(lease, now)
        session = lease.session
        if session is not None and lease.token in session.holds:
            self.at(lease, lease.deadline_ns)  # until then, its work may still be stopping

    def expire(self, lease: Lease, now: int) -> None:
        """Loses the lease if its time is over."""
        if lease.state == HELD and now >= lease.give_up_ns():
            reason, text = lease.why_expired()
            self.lose(lease, reason, now, text=text)

    def _end_lease(self, lease: Lease, now: int) -> None:
        self.stop_timer(lease)
        self.leases.discard(lease)
        for call in list(lease.extensions):  # the token is not extended any more
            self.forget(call, now)
            call.fail(self, Unavailable("the lock has ended"), now)

    def drop_hold(self, lease: Lease, now: int) -> None:
        session = lease.session
        if session is not None:
            session.holds.pop(lease.token, None)
            self._settle(session, now)

    def release(
        self,
        leases: Sequence[Lease],
        done: Optional[Callable[[List[Outcome]], None]],
        now: int,
    ) -> None:
        """Unlocks the leases. done gets the outcome of each. It waits for the daemon only while all
        of them are held: a program must learn of a loss at once, also while no daemon answers."""
        outcomes: List[Outcome] = []
        asked = len(leases)

        def unlocked(outcome: Outcome, at: int) -> None:
            outcomes.append(outcome)
            if len(outcomes) == asked and done is not None:
                done(outcomes)

        for lease in leases:
            self.expire(lease, now)
        waits = done is not None and all(lease.state == HELD for lease in leases)
        for lease in leases:
            if lease.state == RELEASED or lease.reason == "gone":
                lease.state = RELEASED
                unlocked(Outcome(b"GONE", 0, None), now)
                continue
            gives_up_ns = min(now + self.timeout_ns, lease.deadline_ns)
            lease.state, lease.deadline_ns = RELEASED, 0
            lease.on_lost = ignore_loss  # an extension may refer to the lease, until a collection
            self._end_lease(lease, now)
            if waits:
                self._unlock(
                    lease.resource, lease.token, gives_up_ns, lease.session, unlocked, now
                )
            else:
                self.unlock_token(lease.resource, lease.token, lease.ttl_ms, lease.session, now)
                unlocked(Outcome(b"GONE", 0, None), now)
            self.drop_hold(lease, now)

    def unlock_token(
        self, resource: bytes, token: bytes, ttl_ms: int, pin: Optional[Session], now: int
    ) -> None:
        """Releases a lock that nobody wants. After its TTL, it is free anyway."""
        gives_up_ns = now + ttl_ms * NS_PER_MS
        self._unlock(resource, token, gives_up_ns, pin, lambda outcome, at: None, now)

    def _unlock(
        self,
        resource: bytes,
        token: bytes,
        gives_up_ns: int,
        pin: Optional[Session],
        done: Done,
        now: int,
    ) -> None:
        attempt_ns = self.timeout_ns // 2
        self.submit(TokenCall(resource, token, None, gives_up_ns, attempt_ns, pin, done), now)

    # --- the end ---

    def is_idle(self) -> bool:
        """Whether a closed engine has nothing more to do."""
        return not self.sessions and not any(map(_is_unlock, self._timers.values()))

    def _fail(self, calls: Iterable[Timed], error: RedlockError, now: int) -> None:
        for call in list(calls):
            if isinstance(call, Call):
                self.forget(call, now)
                call.fail(self, error, now)

    def closed_error(self) -> Unavailable:
        if self.failure is None:
            return Unavailable("the client is closed")
        error = Unavailable(f"the client has failed: {self.failure!r}")
        error.__cause__ = self.failure
        return error

    def close(self, now: int, failure: Optional[BaseException] = None) -> None:
        """Ends all sessions cleanly, which releases HOLDs and pending LOCKs. What a pending call has
        acquired is still released, over a new session if the OK crosses QUIT. An UNLOCK that has
        no reply yet is still repeated, if an address can be reached. Other locks stay on the masters
        until their TTL ends. failure: the client cannot go on."""
        self.closed, self.ended, self.failure = True, failure is not None, failure
        error = self.closed_error()
        sessions = list(self.sessions)
        held = [lease for session in sessions for lease in session.holds.values()]  # or lost already
        for lease in [*self.leases, *held]:
            self.lose(lease, "closed", now, ended=lease.hold, text=str(error))
        for session in sessions:
            session.holds.clear()
        # Calls in the queue, pending, or in a pause. The greeting of a session has no timer.
        kept = set() if self.ended else set(filter(_is_unlock, self._timers.values()))
        self._fail([timed for timed in self._timers.values() if timed not in kept], error, now)
        for session in sessions:
            if session.state == OPENING and not self.queue:
                self._remove(session)
                self.io.close(session)
            else:
                self._settle(session, now)

    def end(self, now: int) -> None:
        """Nothing is sent any more, as there is nothing to do, or it has taken too long."""
        self.ended = True
        self._fail(self._timers.values(), self.closed_error(), now)

    def disown(self) -> None:
        """In a forked child: the locks and connections belong to the parent."""
        self.closed = self.ended = True
        for lease in self.leases:
            lease.state, lease.reason, lease.deadline_ns = LOST, "forked", 0
        for session in self.sessions:
            session.pending, session.holds = {}, {}
        self._fail(self._timers.values(), Unavailable("the process has forked"), 0)
