"""The core on virtual time: no socket, no thread, no waiting."""

import unittest

import support  # noqa: F401 (finds the package)
from redlockd import Denied, NoQuorum, NotAcquired, Unavailable, _engine, _protocol
from redlockd._calls import CLOSED, HELD, LOST, OPEN, QUITTING, Acquire, Outcome
from redlockd._engine import Engine
from redlockd._lock import was_held
from redlockd._protocol import Garbled

MS, S = 1_000_000, 1_000_000_000
T1, T2 = b"1" * 40, b"2" * 40


class FakeIo:
    def __init__(self):
        self.opened, self.closed, self.warnings = [], [], []

    def connect(self, session):
        self.opened.append(session)

    def flush(self, session):
        pass

    def close(self, session):
        self.closed.append(session)

    def warn(self, text):
        self.warnings.append(text)


class Attempt:
    """An Acquire and what became of it."""

    def __init__(self, test, resources="r", ttl=30.0, wait=0.0, **kwargs):
        names = ("fence", "hold", "linger", "auto_extend")
        flags = {name: kwargs.get(name, False) for name in names}
        options = _protocol.lock_options(resources, ttl, wait, slots=kwargs.get("slots"), **flags)
        self.leases, self.error, self.lost = None, None, []
        self.call = Acquire(options, self.done, self.lost.append)
        self.call.start(test.engine, test.now)

    def done(self, leases, error):
        assert self.leases is None and self.error is None, "done twice"
        self.leases, self.error = leases, error


class EngineCase(unittest.TestCase):
    addresses = ("one",)

    def setUp(self):
        self.now = 1000 * S
        self.io = FakeIo()
        self.engine = Engine(self.addresses, None, 5 * S, self.io)

    def advance(self, ns):
        """Moves the time, and stops at each timer on the way."""
        end = self.now + ns
        while self.engine.next_ns() <= end:
            self.now = max(self.now, self.engine.next_ns())
            self.engine.on_time(self.now)
        self.now = end

    def open(self, secret=None):
        """Opens the connection that the engine asks for."""
        session = self.io.opened[-1]
        self.engine.on_connected(session, secret, self.now)
        self.reply(session, "#ping PONG")
        self.assertEqual(session.state, OPEN)
        return session

    def reply(self, session, *lines):
        data = "".join(line + "\n" for line in lines).encode()
        self.engine.on_bytes(session, data, self.now)

    def sent(self, session):
        """The requests since the last call, without the greeting, as lists of words."""
        lines = [line.split() for line in session.take_output().decode().splitlines()]
        return [words for words in lines if words[0] not in ("#ping", "#auth", "#name")]

    def acquire(self, *args, token=T1, validity=29000, elapsed=0, **kwargs):
        """An acquired lock on an open session."""
        attempt = Attempt(self, *args, **kwargs)
        current = self.engine.current
        session = current if current.state == OPEN else self.open()
        tag = self.sent(session)[-1][0]
        self.reply(session, f"{tag} OK {token.decode()} {validity} {elapsed} -")
        self.assertIsNone(attempt.error)
        return attempt, attempt.leases[0], session


class Deadlines(EngineCase):
    def test_deadline_counts_from_before_the_request(self):
        attempt = Attempt(self, wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        sent = self.now
        self.advance(4 * S)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 3000 -")
        self.assertEqual(attempt.leases[0].deadline_ns, sent + 32 * S)

    def test_elapsed_time_is_not_believed_beyond_the_arrival(self):
        attempt = Attempt(self, wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 99000 -")
        self.assertEqual(attempt.leases[0].deadline_ns, self.now + 29 * S)

    def test_time_in_the_queue_for_a_connection_counts(self):
        """The request counts as sent when it is written, not when it was made."""
        attempt = Attempt(self, wait=60)
        self.advance(1 * S)
        session = self.open()
        [[tag, *words]] = self.sent(session)
        self.assertEqual(words, ["LOCK", "r", "30000", "WAIT", "59000"])
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        self.assertEqual(attempt.leases[0].deadline_ns, self.now + 29 * S)

    def test_lock_is_lost_at_its_deadline(self):
        attempt, lease, _ = self.acquire()
        self.advance(29 * S - 1)
        self.assertEqual((lease.state, attempt.lost), (HELD, []))
        self.advance(1)
        self.assertEqual((lease.state, attempt.lost), (LOST, [lease]))
        self.assertEqual(lease.reason, "expired")

    def test_late_grant_is_confirmed_once(self):
        for reply, granted in (("OK {} 20000 0", True), ("OK {} 0 0", False), ("GONE", False)):
            with self.subTest(reply):
                self.setUp()
                attempt = Attempt(self, wait=60)
                session = self.open()
                [[tag, *_]] = self.sent(session)
                self.now += 31 * S  # the process was stopped
                self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
                [[tag, *words]] = self.sent(session)
                self.assertEqual(words, ["EXTEND", "r", T1.decode(), "30000"])
                self.assertIsNone(attempt.leases)
                self.reply(session, f"{tag} " + reply.format(T1.decode()))
                if granted:
                    self.assertEqual(attempt.leases[0].deadline_ns, self.now + 20 * S)
                    continue
                self.assertIsInstance(attempt.error, NotAcquired)
                self.assertEqual(self.sent(session)[0][1:], ["UNLOCK", "r", T1.decode()])

    def test_late_extension_counts(self):
        """Each reply comes after the next EXTEND was sent."""
        _, lease, session = self.acquire(auto_extend=True)
        sent = []
        for _ in range(200):
            self.advance(1 * S)
            self.reply(session, "! NEWS")  # so the connection is not silent
            sent += [(self.now, tag) for tag, *_ in self.sent(session)]
            if sent and self.now >= sent[0][0] + 6 * S:
                self.reply(session, f"{sent.pop(0)[1]} OK {T1.decode()} 29000 0")
        self.assertEqual(lease.state, HELD)
        before = lease.deadline_ns
        self.engine.release([lease], None, self.now)
        for _, tag in sent:
            self.reply(session, f"{tag} OK {T1.decode()} 29000 0")
        self.assertTrue(before > 0 and lease.deadline_ns == 0)

    def pass_seconds(self, session, count):
        for _ in range(count):
            self.advance(1 * S)
            self.reply(session, "! NEWS")  # so the connection is not silent

    def test_late_gone_counts(self):
        """The EXTEND was given up, by the program (False) or for the next one (True)."""
        for auto_extend in (False, True):
            with self.subTest(auto_extend=auto_extend):
                self.setUp()
                attempt, lease, session = self.acquire(auto_extend=auto_extend)
                outcomes = []
                if auto_extend:
                    self.advance(10 * S)
                else:
                    done = lambda outcome, now: outcomes.append(outcome)  # noqa: E731
                    self.engine.extend(lease, 30000, done, self.now)
                [[tag, *_]] = self.sent(session)
                self.pass_seconds(session, 6)
                self.assertEqual((lease.state, len(outcomes)), (HELD, 0 if auto_extend else 1))
                self.reply(session, f"{tag} GONE")
                self.assertEqual((lease.state, lease.reason), (LOST, "gone"))
                self.assertEqual((lease.deadline_ns, attempt.lost), (0, [lease]))

    def test_gone_leaves_a_lost_lock_no_time(self):
        _, lease, session = self.acquire(auto_extend=True)
        self.pass_seconds(session, 28)
        self.assertEqual((lease.state, lease.reason), (LOST, "unextended"))
        self.assertGreater(lease.deadline_ns, self.now)
        tag = self.sent(session)[0][0]
        self.reply(session, f"{tag} GONE")
        self.assertEqual((lease.deadline_ns, lease.reason), (0, "unextended"))

    def test_close_leaves_a_lost_hold_no_time(self):
        _, lease, session = self.acquire(hold=True)
        self.reply(session, "garbage without a tag that is known")
        self.assertEqual(lease.state, LOST)
        self.assertGreater(lease.deadline_ns, self.now)
        self.engine.close(self.now)
        self.assertEqual(lease.deadline_ns, 0)

    def test_extend_by_the_program_does_not_disturb_the_automatic_one(self):
        _, lease, session = self.acquire(auto_extend=True)
        self.engine.extend(lease, 60000, lambda outcome, now: None, self.now)
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} LIMIT hold")
        self.assertEqual((lease.retry_ns, lease.limit, lease.trouble), (0, None, ""))
        self.advance(10 * S)
        self.assertIn(["EXTEND", "r", T1.decode(), "30000"], [w[1:] for w in self.sent(session)])
        self.advance(18 * S)
        self.assertEqual(lease.reason, "unextended")
        self.assertNotIn("max_hold", lease.text)

    def test_extension_never_shortens(self):
        _, lease, session = self.acquire()
        before = lease.deadline_ns
        self.engine.extend(lease, 1000, lambda outcome, now: None, self.now)
        [[tag, *words]] = self.sent(session)
        self.assertEqual(words, ["EXTEND", "r", T1.decode(), "1000"])
        self.reply(session, f"{tag} OK {T1.decode()} 900 0")
        self.assertEqual((lease.deadline_ns, lease.ttl_ms), (before, 30000))

    def test_extension_after_the_deadline_changes_nothing(self):
        attempt, lease, session = self.acquire(auto_extend=True)
        self.advance(10 * S)
        [[tag, verb, *_]] = self.sent(session)
        self.assertEqual(verb, "EXTEND")
        # The process was stopped: the OK is there before the timer of the loss has run.
        self.now += 20 * S
        self.reply(session, f"{tag} OK {T1.decode()} 29000 19000")
        self.assertEqual((lease.state, attempt.lost), (LOST, [lease]))

    def test_expire_loses_without_a_timer(self):
        attempt, lease, _ = self.acquire()
        self.now += 29 * S
        self.engine.expire(lease, self.now)
        self.assertEqual(attempt.lost, [lease])


class Extensions(EngineCase):
    def test_extends_when_a_third_has_passed(self):
        _, lease, session = self.acquire(auto_extend=True)
        self.advance(9 * S - 1)
        self.assertEqual(self.sent(session), [])
        self.advance(1)
        [[tag, verb, *_]] = self.sent(session)
        self.assertEqual(verb, "EXTEND")
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0")
        self.assertEqual(lease.deadline_ns, self.now + 29 * S)

    def test_tries_again_until_it_gives_up_before_the_deadline(self):
        attempt, lease, session = self.acquire(auto_extend=True)
        while lease.state == HELD:
            self.advance(100 * MS)
            for tag, verb, *_ in self.sent(session):
                if verb == "EXTEND":
                    self.reply(session, f"{tag} NOQUORUM 1/3 need=2 a:timeout b:timeout")
        self.assertEqual(attempt.lost, [lease])
        self.assertEqual(lease.reason, "unextended")
        self.assertIn("a:timeout", lease.text)
        self.assertLessEqual(self.now, lease.deadline_ns - 1 * S + 100 * MS)
        self.assertGreater(self.now, lease.deadline_ns - 2 * S)

    def test_gone_is_final(self):
        attempt, lease, session = self.acquire(auto_extend=True)
        self.advance(10 * S)
        tag = self.sent(session)[0][0]
        self.reply(session, f"{tag} GONE")
        self.assertEqual((attempt.lost, lease.reason, lease.deadline_ns), ([lease], "gone", 0))
        self.advance(60 * S)
        self.engine.release([lease], None, self.now)
        self.assertEqual(self.sent(session), [])  # the token is used no more

    def test_the_end_of_the_lease_does_not_hide_why_it_ends(self):
        """The last EXTEND is still under way then."""
        _, lease, session = self.acquire(auto_extend=True, ttl=6, validity=5900)
        while lease.state == HELD:
            for tag, *words in self.sent(session):
                if words[0] == "EXTEND" and self.now < lease.give_up_ns() - 300 * MS:
                    self.reply(session, f"{tag} LIMIT other")
                else:
                    self.reply(session, "! NEWS")  # so the connection is not silent
            self.advance(100 * MS)
        self.assertIn("other", lease.text)

    def test_unlock_stops_the_extension(self):
        _, lease, session = self.acquire(auto_extend=True)
        self.advance(10 * S)
        tag = self.sent(session)[0][0]
        self.engine.release([lease], None, self.now)
        self.assertEqual(self.sent(session)[0][1], "UNLOCK")
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0")
        self.assertEqual(lease.deadline_ns, 0)
        self.advance(60 * S)
        self.assertFalse([words for words in self.sent(session) if words[1] == "EXTEND"])

    def test_nothing_is_extended_after_unlock_was_sent(self):
        _, lease, session = self.acquire(auto_extend=True)
        outcomes = []
        self.advance(10 * S)  # one extension by the engine, and one by the caller
        self.engine.extend(lease, 9000, lambda outcome, now: outcomes.append(outcome), self.now)
        self.assertEqual([words[1] for words in self.sent(session)], ["EXTEND", "EXTEND"])
        self.engine.on_closed(session, "reset", self.now)  # both are to be sent again
        self.engine.release([lease], None, self.now)
        self.assertIsInstance(outcomes[0].error, Unavailable)
        self.advance(1 * S)
        self.assertEqual([words[1] for words in self.sent(self.open())], ["UNLOCK"])

    def test_ends_with_the_acquire_of_several(self):
        """The wait is over when the connection is lost, or found silent."""
        for is_silent in (False, True):
            with self.subTest(is_silent=is_silent):
                self.setUp()
                attempt = Attempt(self, ["a", "b"], wait=12)
                session = self.open()
                [[tag, *_]] = self.sent(session)
                self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
                for _ in range(8):
                    self.advance(1 * S)
                    self.reply(session, "! NEWS")  # so the connection is not silent yet
                self.advance(1 * S)
                self.assertEqual([words[1] for words in self.sent(session)], ["LOCK", "EXTEND"])
                self.advance(4 * S)
                if is_silent:
                    self.advance(1 * S)
                else:
                    self.engine.on_closed(session, "reset", self.now)
                    self.advance(1 * S)
                self.assertIsInstance(attempt.error, Unavailable)
                self.assertEqual([words[1] for words in self.sent(self.open())], ["UNLOCK"])

    def test_survives_a_lost_connection(self):
        attempt, lease, session = self.acquire(auto_extend=True)
        self.engine.on_closed(session, "reset", self.now)
        self.advance(10 * S)
        other = self.open()
        self.assertIsNot(other, session)
        [[tag, *words]] = self.sent(other)
        self.assertEqual(words, ["EXTEND", "r", T1.decode(), "30000"])
        self.reply(other, f"{tag} OK {T1.decode()} 29000 0")
        self.assertEqual((lease.state, attempt.lost), (HELD, []))


class Holds(EngineCase):
    def test_lost_is_told_at_once_and_is_final(self):
        attempt, lease, session = self.acquire(hold=True)
        deadline = lease.deadline_ns
        self.reply(session, f"! LOST r {T1.decode()} noquorum")
        self.assertEqual((attempt.lost, lease.reason), ([lease], "noquorum"))
        self.assertEqual(lease.deadline_ns, deadline)
        self.advance(60 * S)
        self.assertEqual(self.sent(session), [])

    def test_after_gone_no_time_is_left(self):
        _, lease, session = self.acquire(hold=True)
        self.reply(session, f"! LOST r {T1.decode()} gone")
        self.assertEqual(lease.deadline_ns, 0)

    def test_warn_is_logged_only(self):
        attempt, _, session = self.acquire(hold=True)
        self.reply(session, f"! WARN r {T1.decode()} a:restarted")
        self.assertEqual(attempt.lost, [])
        self.assertRegex(self.io.warnings[0], "^redlockd: r is still held.*a:restarted$")

    def test_is_lost_with_its_connection(self):
        for linger in (False, True):
            with self.subTest(linger=linger):
                self.setUp()
                attempt, lease, session = self.acquire(hold=True, linger=linger)
                self.engine.on_closed(session, "reset", self.now)
                self.assertEqual(attempt.lost, [lease])
                self.assertEqual(lease.deadline_ns > 0, linger)

    def test_silence_proves_nothing(self):
        attempt, lease, session = self.acquire(hold=True)
        self.advance(28 * S)
        self.assertEqual(attempt.lost, [lease])
        self.assertEqual(self.sent(session)[0][1], "EXTEND")

    def test_connection_stays_until_the_work_has_ended(self):
        """The daemon is silent: a clean end of the connection would release the HOLD at once."""
        _, lease, session = self.acquire(hold=True)
        self.advance(28 * S)
        self.assertEqual((lease.state, session.state), (LOST, OPEN))
        self.advance(lease.deadline_ns - self.now)
        self.assertEqual(session.state, QUITTING)

    def test_connection_stays_after_garbage_as_well(self):
        attempt, lease, session = self.acquire(hold=True)
        waiting = Attempt(self, "other", wait=60)
        [[tag, *_]] = self.sent(session)
        deadline_ns = lease.deadline_ns
        self.reply(session, "hello", f"{tag} OK {T2.decode()} 29000 0 -")
        self.assertEqual(attempt.lost, [lease])
        self.assertEqual((lease.deadline_ns, session.state), (deadline_ns, OPEN))
        self.assertEqual((lease.reason, lease.text), ("closed", "this is no redlockd: hello"))
        other = self.open()
        [[tag, *words]] = self.sent(other)
        self.assertEqual(words[:2], ["LOCK", "other"])
        self.reply(other, f"{tag} OK {T2.decode()} 29000 0 -")
        self.assertEqual(waiting.leases[0].token, T2)
        self.reply(session, f"! LOST r {T1.decode()} gone")  # nothing from there counts
        self.assertEqual(lease.deadline_ns, deadline_ns)
        self.advance(deadline_ns - self.now)
        self.assertEqual(session.state, QUITTING)

    def test_extension_is_not_sent_over_another_connection(self):
        _, lease, session = self.acquire(hold=True)
        outcomes = []
        self.engine.on_closed(session, "reset", self.now)
        self.engine.extend(lease, 30000, lambda outcome, now: outcomes.append(outcome), self.now)
        self.assertIsInstance(outcomes[0].error, Unavailable)
        self.assertEqual(len(self.io.opened), 1)

    def test_extension_is_not_repeated_over_another_connection(self):
        _, lease, session = self.acquire(hold=True)
        outcomes = []
        self.engine.extend(lease, 30000, lambda outcome, now: outcomes.append(outcome), self.now)
        self.engine.on_closed(session, "reset", self.now)
        self.assertIsInstance(outcomes[0].error, Unavailable)
        self.assertEqual((len(self.engine.queue), len(self.io.opened)), (0, 1))

    def test_is_unlocked_over_its_own_connection(self):
        _, lease, session = self.acquire(hold=True)
        self.engine.drain(session, self.now)  # other requests go elsewhere
        self.engine.release([lease], None, self.now)
        [[tag, *words]] = self.sent(session)
        self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
        self.reply(session, f"{tag} OK")
        self.assertEqual(session.state, QUITTING)

    def test_ends_with_its_connection_if_unlock_is_refused(self):
        """The daemon would extend it as long as the connection lives."""
        _, lease, session = self.acquire(hold=True)
        _, other, _ = self.acquire("other", hold=True, token=T2)
        outcomes = []
        self.engine.release([lease], outcomes.extend, self.now)
        ends = self.now + 5 * S
        while not outcomes and self.now < ends:
            for tag, *words in self.sent(session):
                self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
                self.reply(session, f"{tag} LIMIT operations")
            self.advance(50 * MS)
        self.assertGreaterEqual(self.now, ends - 500 * MS)
        self.assertEqual(outcomes[0].error.limit, "operations")
        self.assertEqual((session.state, other.state), (OPEN, HELD))
        self.engine.release([other], None, self.now)
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK")
        self.assertEqual(session.state, QUITTING)


class Releases(EngineCase):
    def test_of_a_lost_lock_tells_at_once(self):
        """The daemon is away. The program gets Lost, and the key is deleted when it is back."""
        for flags in ({"hold": True}, {"hold": True, "linger": True}, {"auto_extend": True}, {}):
            with self.subTest(flags):
                self.setUp()
                _, lease, session = self.acquire(**flags)
                self.engine.on_closed(session, "reset", self.now)
                while lease.state == HELD:
                    self.advance(100 * MS)
                    if self.engine.current is not None:
                        self.engine.on_closed(self.engine.current, "refused", self.now)
                outcomes = []
                self.engine.release([lease], outcomes.extend, self.now)
                self.assertEqual([outcome.word for outcome in outcomes], [b"GONE"])
                self.advance(10 * S)
                session = self.open()
                self.assertEqual(self.sent(session)[-1][1:], ["UNLOCK", "r", T1.decode()])

    def test_of_several_tells_at_once_if_one_is_lost(self):
        attempt = Attempt(self, ["a", "b"])
        session = self.open()
        for token, validity in ((T1, 29000), (T2, 20000)):
            [[tag, *_]] = self.sent(session)
            self.reply(session, f"{tag} OK {token.decode()} {validity} 0 -")
        self.advance(20 * S)
        self.assertEqual([lease.state for lease in attempt.leases], [HELD, LOST])
        outcomes = []
        self.engine.release(attempt.leases, outcomes.extend, self.now)
        self.assertEqual([outcome.word for outcome in outcomes], [b"GONE", b"GONE"])
        self.assertEqual([words[1] for words in self.sent(session)], ["UNLOCK", "UNLOCK"])

    def test_of_several_says_that_one_was_lost(self):
        failed = Outcome(b"", 0, Unavailable("no answer"))
        gone, released = Outcome(b"GONE", 0, None), Outcome(b"OK", 0, None)
        for outcomes, held in (([released, released], True), ([failed, gone], False)):
            self.assertEqual(was_held(outcomes), held)
        self.assertRaises(Unavailable, was_held, [released, failed])

    def test_of_a_lock_whose_timer_is_late_tells_at_once(self):
        _, lease, _ = self.acquire(auto_extend=True)
        self.now += 28 * S  # the process was stopped
        outcomes = []
        self.engine.release([lease], outcomes.extend, self.now)
        self.assertEqual((outcomes[0].word, lease.reason), (b"GONE", "unextended"))

    def test_waits_no_longer_than_the_lock_lives(self):
        _, lease, session = self.acquire(ttl=3, validity=2000)
        outcomes = []
        self.engine.release([lease], outcomes.extend, self.now)
        self.advance(2 * S - 1)
        self.assertEqual(outcomes, [])
        self.advance(1)
        self.assertIsInstance(outcomes[0].error, Unavailable)

    def test_close_gives_each_address_one_more_chance(self):
        for is_back in (True, False):
            with self.subTest(is_back=is_back):
                self.setUp()
                _, lease, session = self.acquire(hold=True)
                self.engine.on_closed(session, "reset", self.now)
                self.engine.release([lease], None, self.now)
                self.engine.close(self.now)
                self.assertFalse(self.engine.is_idle())
                self.advance(1 * S)  # the pause before the next connection
                if is_back:
                    session = self.open()
                    [[tag, *words]] = self.sent(session)
                    self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
                    self.reply(session, f"{tag} OK")
                    self.engine.on_closed(session, "", self.now)
                else:
                    self.engine.on_closed(self.io.opened[-1], "refused", self.now)
                self.assertTrue(self.engine.is_idle())

    def test_close_repeats_an_unlock_without_a_reply(self):
        _, lease, session = self.acquire()
        self.engine.release([lease], None, self.now)
        self.assertEqual([words[1] for words in self.sent(session)], ["UNLOCK"])
        self.engine.close(self.now)
        self.engine.on_closed(session, "reset", self.now)
        self.assertFalse(self.engine.is_idle())
        self.advance(1 * S)  # the pause before the next connection
        session = self.open()
        [[tag, *words]] = self.sent(session)
        self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
        self.reply(session, f"{tag} OK")
        self.engine.on_closed(session, "", self.now)
        self.assertTrue(self.engine.is_idle())


class Connections(EngineCase):
    def test_a_reply_counts_only_with_its_end(self):
        attempt = Attempt(self)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.engine.on_bytes(session, f"{tag} OK {T1.decode()} 2".encode(), self.now)
        self.assertIsNone(attempt.leases)
        self.engine.on_bytes(session, b"9000 0 -\n", self.now)
        self.assertEqual(attempt.leases[0].deadline_ns, self.now + 29 * S)

    def test_cancelled_lock_is_released_when_it_is_granted(self):
        self.acquire("other", hold=True, token=T2)
        session = self.engine.current
        attempt = Attempt(self, wait=60)
        [[tag, *_]] = self.sent(session)
        attempt.call.cancel(self.engine, self.now)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        [[_, *words]] = self.sent(session)
        self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
        self.assertEqual((attempt.leases, attempt.error), (None, None))

    def test_cancelled_lock_that_nobody_shares_is_undone_by_quit(self):
        attempt = Attempt(self, wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        attempt.call.cancel(self.engine, self.now)
        self.assertEqual((self.sent(session), session.state), ([["#quit", "QUIT"]], QUITTING))
        # The grant was in transit already: it is released over the next connection.
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -", "#quit BYE")
        self.engine.on_closed(session, "", self.now)
        other = self.open()
        self.assertEqual(self.sent(other)[0][1:], ["UNLOCK", "r", T1.decode()])

    def test_no_session_with_a_hold_is_ended(self):
        _, lease, session = self.acquire("held", hold=True)
        attempt = Attempt(self, wait=60)
        attempt.call.cancel(self.engine, self.now)
        self.assertEqual((session.state, lease.state), (OPEN, HELD))

    def test_many_cancelled_locks_do_not_fill_a_connection(self):
        self.acquire("held", hold=True)
        session = self.engine.current
        for _ in range(_engine.SESSION_ABANDONED):
            Attempt(self, wait=60).call.cancel(self.engine, self.now)
        self.assertIsNone(self.engine.current)
        Attempt(self, wait=60)
        self.assertIsNot(self.engine.current, session)

    def test_cancel_with_the_grant_in_hand_releases(self):
        attempt, lease, session = self.acquire()
        attempt.call.cancel(self.engine, self.now)
        self.assertEqual(self.sent(session)[0][1:], ["UNLOCK", "r", T1.decode()])

    def test_a_lock_that_ends_says_nothing_about_the_daemon(self):
        """UNLOCK is given up after 1 ms, with the lock."""
        _, lease, session = self.acquire()
        self.advance(lease.deadline_ns - self.now - 101 * MS)
        self.reply(session, "! NEWS")
        self.advance(100 * MS)
        outcomes = []
        self.engine.release([lease], outcomes.extend, self.now)
        self.advance(1 * MS)
        self.assertIsInstance(outcomes[0].error, Unavailable)
        self.assertIs(self.engine.current, session)

    def test_broken_connection_repeats_unlock_with_the_same_token(self):
        _, lease, session = self.acquire()
        outcomes = []
        self.engine.release([lease], outcomes.extend, self.now)
        self.sent(session)
        self.engine.on_closed(session, "reset", self.now)
        self.advance(1 * S)
        other = self.open()
        [[tag, *words]] = self.sent(other)
        self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
        self.reply(other, f"{tag} GONE")  # the first one may have released it
        self.assertEqual(outcomes[0].word, b"OK")

    def test_gone_to_the_only_unlock_says_that_the_lock_had_ended(self):
        _, lease, session = self.acquire()
        outcomes = []
        self.engine.release([lease], outcomes.extend, self.now)
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} GONE")
        self.assertEqual(outcomes[0].word, b"GONE")

    def test_unlock_is_sent_again_after_a_limit(self):
        for hold, is_draining, reply, word in (
            (False, False, "OK", b"OK"),
            (False, False, "GONE", b"GONE"),  # the limit has undone nothing
            (True, False, "GONE", b"GONE"),
            (True, True, "GONE", b"OK"),  # the end of the connection may have released the HOLD
        ):
            with self.subTest(hold=hold, is_draining=is_draining, reply=reply):
                self.setUp()
                _, lease, session = self.acquire(hold=hold)
                if is_draining:
                    self.engine.drain(session, self.now)
                outcomes = []
                self.engine.release([lease], outcomes.extend, self.now)
                [[tag, *_]] = self.sent(session)
                self.reply(session, f"{tag} LIMIT operations")
                self.assertEqual(outcomes, [])
                self.advance(1 * S)
                if is_draining:
                    self.assertEqual(session.state, CLOSED)
                    session = self.open()
                [[tag, *words]] = self.sent(session)
                self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
                self.reply(session, f"{tag} {reply}")
                self.assertEqual(outcomes[0].word, word)

    def test_broken_connection_repeats_lock_within_its_wait(self):
        attempt = Attempt(self, wait=60)
        session = self.open()
        self.sent(session)
        self.engine.on_closed(session, "reset", self.now)
        self.advance(1 * S)
        other = self.open()
        self.assertEqual(self.sent(other)[0][1:], ["LOCK", "r", "30000", "WAIT", "59000"])
        for _ in range(61):  # nobody is there any more
            self.advance(1 * S)
            if self.engine.current is not None:
                self.engine.on_closed(self.engine.current, "refused", self.now)
        self.assertIsInstance(attempt.error, Unavailable)

    def test_extend_takes_no_longer_than_the_time_limit_of_a_request(self):
        _, lease, session = self.acquire()
        self.engine.on_closed(session, "reset", self.now)
        outcomes, began = [], self.now
        self.engine.extend(lease, 30000, lambda outcome, now: outcomes.append(outcome), self.now)
        while not outcomes and lease.state == HELD:
            self.advance(100 * MS)
            if self.engine.current is not None:
                self.engine.on_closed(self.engine.current, "refused", self.now)
        self.assertEqual((lease.state, self.now - began), (HELD, 5 * S))
        self.assertRegex(str(outcomes[0].error), "no daemon can be reached: one: refused")

    def test_automatic_extension_goes_on_for_longer(self):
        attempt, lease, session = self.acquire(auto_extend=True)
        self.engine.on_closed(session, "reset", self.now)
        while self.now < lease.deadline_ns - 1200 * MS:
            self.advance(100 * MS)
            if self.engine.current is not None:
                self.engine.on_closed(self.engine.current, "refused", self.now)
        self.assertEqual([call.ttl_ms for call in self.engine.queue], [30000])
        self.advance(1 * S)
        self.assertEqual(attempt.lost, [lease])
        self.assertIn("one: refused", lease.text)

    def test_first_connection_is_tried_again_for_the_time_limit_of_a_request(self):
        late, early = Attempt(self, wait=60), Attempt(self, resources="q", wait=2)
        now = Attempt(self, resources="p")
        for second in range(6):
            self.engine.on_closed(self.io.opened[-1], "refused", self.now)
            self.assertIsNotNone(now.error)
            self.assertEqual(early.error is not None, second >= 2)
            self.assertEqual(late.error is not None, second >= 5)
            self.advance(1 * S)
        self.assertIsInstance(late.error, Unavailable)

    def test_an_attempt_that_ends_before_the_first_connection_names_the_address(self):
        attempt = Attempt(self, wait=1)
        self.advance(1 * S)
        self.assertRegex(str(attempt.error), "in time: one$")

    def test_silent_connection_is_found_by_ping(self):
        attempt = Attempt(self, wait=600)
        session = self.open()
        self.sent(session)
        self.advance(6 * S)
        self.assertEqual([words[1] for words in self.sent(session)], ["PING"])
        self.advance(4500 * MS)
        self.assertEqual(session.state, QUITTING)
        other = self.open()
        self.assertEqual(self.sent(other)[0][1:3], ["LOCK", "r"])
        self.assertIsNone(attempt.error)

    def test_wait_with_pongs_goes_on(self):
        attempt = Attempt(self, wait=600)
        session = self.open()
        for _ in range(500):
            self.advance(1 * S)
            for tag, verb, *_ in self.sent(session):
                if verb == "PING":
                    self.reply(session, f"{tag} PONG")
        self.assertEqual((attempt.error, session.state), (None, OPEN))

    def test_wrong_secret_ends_all(self):
        attempt = Attempt(self, wait=60)
        session = self.io.opened[-1]
        self.engine.on_connected(session, b"secret", self.now)
        self.assertIn(b"#auth AUTH secret\n", session.take_output())
        self.reply(session, "#auth DENIED wrong secret")
        self.assertIsInstance(attempt.error, Denied)
        self.advance(60 * S)
        self.assertEqual(len(self.io.opened), 1)

    def test_wrong_secret_ends_an_extension_with_its_acquire(self):
        """The secret has changed. The lock is released, which ends its extension in the queue."""
        attempt = Attempt(self, ["a", "b"], wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        self.engine.on_closed(session, "reset", self.now)
        self.advance(9500 * MS)
        self.engine.on_closed(self.engine.current, "refused", self.now)
        self.advance(1 * S)
        self.assertEqual(len(self.engine.queue), 2)
        session = self.engine.current
        self.engine.on_connected(session, b"secret", self.now)
        self.reply(session, "#auth DENIED wrong secret")
        self.assertIsInstance(attempt.error, Denied)

    def test_backoff_grows_and_has_a_limit(self):
        self.acquire(auto_extend=True)
        self.engine.on_closed(self.engine.current, "reset", self.now)
        Attempt(self, "waiting", wait=3600)
        times = []
        for _ in range(20):
            while self.engine.current is None:
                self.advance(1 * MS)
            times.append(self.now)
            self.engine.on_closed(self.engine.current, "refused", self.now)
        pauses = [later - earlier for earlier, later in zip(times, times[1:])]
        self.assertLess(pauses[0], 150 * MS)
        self.assertTrue(all(450 * MS <= pause <= 1001 * MS for pause in pauses[8:]), pauses)

    def test_full_connection_drains(self):
        attempts = [Attempt(self, f"r{n}", wait=60) for n in range(_engine.SESSION_REQUESTS + 1)]
        first = self.open()
        second = self.open()
        self.assertIsNot(first, second)
        self.assertEqual(len(self.sent(second)), 1)
        for number, (tag, *_) in enumerate(self.sent(first)):
            ok = f"OK {T1.decode()} 1 0 -"
            self.reply(first, f"{tag} HELD 1000" if number else f"{tag} {ok}")
        self.assertEqual(first.state, QUITTING)
        self.assertIsNotNone(attempts[0].leases)

    def test_garbage_closes_the_connection(self):
        ok = f"#1 OK {T1.decode()}"
        for line in ("hello", "#1 OK", "#1 OK x 1 1 -", f"{ok} +1 1 -", "#9 OK",
                     f"{ok} 30001 0 -", f"{ok} 1 1", "#1"):  # fmt: skip
            with self.subTest(line):
                self.setUp()
                attempt = Attempt(self)
                session = self.open()
                self.reply(session, line)
                self.assertEqual((session.state, attempt.leases), (CLOSED, None))

    def test_close_fails_what_is_under_way(self):
        waiting = Attempt(self, wait=60)
        session = self.open()
        held, lease, _ = self.acquire("held", hold=True)
        self.engine.close(self.now)
        self.assertIsInstance(waiting.error, Unavailable)
        self.assertEqual((held.lost, lease.deadline_ns), ([lease], 0))
        self.assertIn(["#quit", "QUIT"], self.sent(session))
        self.assertIsInstance(Attempt(self).error, Unavailable)

    def test_close_fails_what_pauses(self):
        for reply in ("LATE 900", "HELD 1000"):
            with self.subTest(reply):
                self.setUp()
                attempt = Attempt(self, wait=60)
                session = self.open()
                [[tag, *_]] = self.sent(session)
                self.reply(session, f"{tag} {reply}")
                self.assertIsNone(attempt.error)
                self.engine.close(self.now)
                self.assertIsInstance(attempt.error, Unavailable)
                self.assertEqual(self.sent(session), [["#quit", "QUIT"]])
                self.advance(60 * S)
                self.assertFalse(self.engine.sessions)

    def test_close_releases_what_is_granted_meanwhile(self):
        Attempt(self, wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.engine.close(self.now)
        self.assertEqual(self.sent(session), [["#quit", "QUIT"]])
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -", "#quit BYE")
        self.engine.on_closed(session, "", self.now)
        second = self.open()
        [[tag, *words]] = self.sent(second)
        self.assertEqual(words, ["UNLOCK", "r", T1.decode()])
        self.reply(second, f"{tag} OK")
        self.assertEqual(second.state, QUITTING)

    def test_close_releases_one_of_several(self):
        attempt = Attempt(self, ["a", "b"], wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        self.sent(session)
        self.engine.close(self.now)
        self.assertIsInstance(attempt.error, Unavailable)
        self.assertEqual(self.sent(session), [["#quit", "QUIT"]])
        second = self.open()
        [[tag, *words]] = self.sent(second)
        self.assertEqual(words, ["UNLOCK", "a", T1.decode()])
        self.reply(second, f"{tag} OK")
        self.assertEqual(second.state, QUITTING)

    def test_close_releases_one_of_several_over_a_connection_that_opens(self):
        attempt = Attempt(self, ["a", "b"], wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        self.engine.on_closed(session, "reset", self.now)
        self.advance(1 * S)
        session = self.engine.current
        self.engine.on_connected(session, None, self.now)
        self.engine.close(self.now)
        self.assertIsInstance(attempt.error, Unavailable)
        self.reply(session, "#ping PONG")
        self.assertEqual(self.sent(session)[0][1:], ["UNLOCK", "a", T1.decode()])

    def test_a_closed_client_does_not_try_for_long(self):
        Attempt(self, wait=60)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.engine.close(self.now)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -", "#quit BYE")
        self.engine.on_closed(session, "", self.now)
        self.engine.on_closed(self.io.opened[-1], "refused", self.now)
        self.assertFalse(self.engine.sessions)
        self.engine.end(self.now)
        self.assertFalse(self.engine.queue)

    def test_unused_timers_are_dropped(self):
        attempt, lease, session = self.acquire("kept")
        for _ in range(5000):
            _, lease, session = self.acquire(token=T2)
            self.engine.release([lease], None, self.now)
            [[tag, *_]] = self.sent(session)
            self.reply(session, f"{tag} OK")
        self.assertLess(len(self.engine._heap), 200)


class TwoDaemons(EngineCase):
    addresses = ("one", "two")

    def test_order_of_preference(self):
        Attempt(self)
        self.assertEqual(self.io.opened[-1].address, 0)
        self.engine.on_closed(self.io.opened[-1], "refused", self.now)
        self.assertEqual(self.io.opened[-1].address, 1)

    def test_a_daemon_that_does_not_answer_is_passed_over(self):
        Attempt(self)
        self.engine.on_connected(self.io.opened[-1], None, self.now)
        self.advance(3 * S)
        self.assertEqual(self.io.opened[-1].address, 1)

    def test_all_refuse(self):
        attempt = Attempt(self)
        for _ in range(2):
            self.engine.on_closed(self.io.opened[-1], "refused", self.now)
        self.assertIsInstance(attempt.error, Unavailable)
        self.assertIn("one: refused; two: refused", str(attempt.error))

    def test_a_secret_that_one_daemon_refuses(self):
        for is_accepted in (True, False):
            with self.subTest(is_accepted=is_accepted):
                self.setUp()
                attempt = Attempt(self, wait=60)
                self.engine.on_connected(self.io.opened[-1], b"secret", self.now)
                self.reply(self.io.opened[-1], "#auth DENIED wrong secret")
                self.assertEqual((self.io.opened[-1].address, attempt.error), (1, None))
                if not is_accepted:
                    self.engine.on_closed(self.io.opened[-1], "refused", self.now)
                    self.assertIsInstance(attempt.error, Denied)
                    continue
                session = self.open()
                self.assertEqual(self.sent(session)[0][1], "LOCK")
                self.engine.on_closed(session, "reset", self.now)
                for _ in range(2):  # the daemon that refuses the secret has gone as well
                    self.advance(1 * S)
                    self.engine.on_closed(self.io.opened[-1], "refused", self.now)
                self.assertIsNone(attempt.error)

    def test_shutdown_moves_to_the_next_daemon(self):
        attempt = Attempt(self)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} SHUTDOWN")
        self.assertEqual(self.io.opened[-1].address, 1)
        other = self.open()
        [[tag, *_]] = self.sent(other)
        self.reply(other, f"{tag} OK {T1.decode()} 29000 0 -")
        self.assertIsNotNone(attempt.leases)

    def test_silent_daemon_loses_the_extension_to_the_next(self):
        _, lease, session = self.acquire(auto_extend=True)
        self.advance(15 * S)
        self.assertEqual(self.io.opened[-1].address, 1)
        other = self.open()
        [[tag, *words]] = self.sent(other)
        self.assertEqual(words[0], "EXTEND")
        self.reply(other, f"{tag} OK {T1.decode()} 29000 0")
        self.assertEqual(lease.deadline_ns, self.now + 29 * S)


class Several(EngineCase):
    def test_all_or_none_in_the_order_of_bytes(self):
        attempt = Attempt(self, ["b", "ä", "a"], wait=60)
        session = self.open()
        for name, token in (("a", T1), ("b", T2)):
            [[tag, *words]] = self.sent(session)
            self.assertEqual(words[:2], ["LOCK", name])
            self.reply(session, f"{tag} OK {token.decode()} 29000 0 -")
        [[tag, *words]] = self.sent(session)
        self.assertEqual(words[1], "ä")
        self.reply(session, f"{tag} NOQUORUM 1/3 need=2 a:timeout b:refused")
        self.assertIsInstance(attempt.error, NoQuorum)
        self.assertEqual(attempt.error.reasons, {"a": "timeout", "b": "refused"})
        unlocked = [words[1:] for words in self.sent(session)]
        self.assertEqual(unlocked, [["UNLOCK", "a", T1.decode()], ["UNLOCK", "b", T2.decode()]])

    def test_the_first_is_extended_during_the_wait_for_the_second(self):
        attempt = Attempt(self, ["a", "b"], wait=600)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        [[waiting, *_]] = self.sent(session)
        for _ in range(100):
            self.advance(1 * S)
            for tag, verb, *_ in self.sent(session):
                ok = f"OK {T1.decode()} 29000 0"
                self.reply(session, f"{tag} {'PONG' if verb == 'PING' else ok}")
        self.reply(session, f"{waiting} OK {T2.decode()} 29000 99000 -")
        first, second = attempt.leases
        self.assertTrue(first.deadline_ns > self.now + 15 * S)
        self.sent(session)
        self.advance(30 * S)  # from now on, nothing extends them
        self.assertNotIn("EXTEND", [words[1] for words in self.sent(session)])
        self.assertEqual((first.state, second.state), (LOST, LOST))

    def test_an_expired_lock_is_not_handed_out(self):
        attempt = Attempt(self, ["a", "b"], wait=600)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        [[waiting, *_]] = self.sent(session)
        self.now += 60 * S  # the process was stopped, and no timer has run yet
        self.reply(session, f"{waiting} OK {T2.decode()} 29000 59000 -")
        self.assertIsInstance(attempt.error, NotAcquired)
        self.assertIsNone(attempt.leases)

    def test_a_loss_during_the_wait_fails(self):
        attempt = Attempt(self, ["a", "b"], wait=600)
        session = self.open()
        [[tag, *_]] = self.sent(session)
        self.reply(session, f"{tag} OK {T1.decode()} 29000 0 -")
        [[waiting, *_]] = self.sent(session)
        verb = ""
        while verb != "EXTEND":
            self.advance(1 * S)
            for tag, verb, *_ in self.sent(session):
                self.reply(session, f"{tag} {'PONG' if verb == 'PING' else 'GONE'}")
        self.advance(0)
        self.assertIsInstance(attempt.error, NotAcquired)  # at once, not after the wait
        self.assertIn("a was lost during the wait: the token does not hold it", str(attempt.error))
        self.reply(session, f"{waiting} OK {T2.decode()} 29000 9000 -")
        self.engine.on_closed(session, "", self.now)
        other = self.open()
        self.assertEqual(self.sent(other)[-1][1:], ["UNLOCK", "b", T2.decode()])


class Protocol(unittest.TestCase):
    def options(self, resources="r", ttl=30, wait=0.0, slots=None, **flags):
        names = ("fence", "hold", "linger", "auto_extend")
        flags = {name: flags.get(name, False) for name in names}
        return _protocol.lock_options(resources, ttl, wait, slots=slots, **flags)

    def test_lines(self):
        options = self.options(ttl=1.5, slots=3, fence=True, hold=True, linger=True)
        line = _protocol.lock_line(options, b"r", 1500 * MS + 1)
        self.assertEqual(line, b"LOCK r 1500 SLOTS 3 FENCE HOLD LINGER WAIT 1500")
        self.assertEqual(_protocol.lock_line(self.options(), b"r", 0), b"LOCK r 30000")
        line = _protocol.lock_line(self.options(), b"r", 1 << 61)
        self.assertEqual(line, b"LOCK r 30000 WAIT 86400000")

    def test_durations_are_exact(self):
        for seconds, ms in ((0.3, 300), (1.001, 1001), (0.0019, 1), (29.999, 29999)):
            self.assertEqual(_protocol.ttl_to_ms(seconds), ms)

    def test_slots_are_checked(self):
        options = self.options(slots=2)
        words = [b"#1", b"OK", T1, b"1", b"1", b"-"]
        grant = _protocol.parse_granted(words + [b"r#2"], options, b"r")
        self.assertEqual(grant.resource, b"r#2")
        for slot in ([], [b"r"], [b"r#3"], [b"r#0"], [b"r#"], [b"s#1"]):
            with self.assertRaises(Garbled):
                _protocol.parse_granted(words + slot, options, b"r")

    def test_fence_is_checked(self):
        words = [b"#1", b"OK", T1, b"1", b"1"]
        options = self.options(fence=True)
        self.assertEqual(_protocol.parse_granted(words + [b"7", b"x"], options, b"r").fence, 7)
        for fence in (b"-", b"x", str(1 << 53).encode()):
            with self.assertRaises(Garbled):
                _protocol.parse_granted(words + [fence], options, b"r")

    def test_another_token_is_not_an_extension(self):
        with self.assertRaises(Garbled):
            _protocol.parse_extended([b"#1", b"OK", T2, b"1", b"1"], T1, 30000)


if __name__ == "__main__":
    unittest.main()
