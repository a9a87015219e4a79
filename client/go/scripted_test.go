package redlockd

// Scenarios of client/scenarios.md with a daemon that the test plays itself.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestScripted(t *testing.T) {
	for name, run := range map[string]func(*testing.T){
		"late_on_arrival":                              lateOnArrival,
		"late_reply_is_released":                       lateReplyIsReleased,
		"late_reply_is_released_after_quit":            lateReplyAfterQuit,
		"late_reply_is_released_after_close":           lateReplyAfterClose,
		"close_releases_one_of_several":                closeReleasesOneOfSeveral,
		"one_connection_is_enough":                     oneConnectionIsEnough,
		"lock_again_after_late":                        lockAgainAfterLate,
		"unlock_again":                                 unlockAgain,
		"no_extend_after_unlock":                       noExtendAfterUnlock,
		"daemon_away":                                  daemonAway,
		"limit":                                        limit,
		"truncated_reply":                              truncatedReply,
		"garbage":                                      garbage,
		"reply_on_given_up_connection":                 replyOnGivenUpConnection,
		"unix_socket_stays_open":                       unixSocketStaysOpen,
		"loss_is_final":                                lossIsFinal,
		"extension_moves_from_a_silent_daemon":         extensionMovesFromASilentDaemon,
		"extension_moves_to_another_daemon":            extensionMovesToAnotherDaemon,
		"late_extensions_count":                        lateExtensionsCount,
		"late_gone_counts":                             lateGoneCounts,
		"contexts_say_why":                             contextsSayWhy,
		"deadline_of_the_context_ends_the_wait":        deadlineOfTheContextEndsTheWait,
		"deadline_is_computed_from_before_the_request": deadlineIsComputedFromBeforeTheRequest,
		"hold_is_lost":                                 holdIsLost,
		"loss_says_why":                                lossSaysWhy,
		"hold_ends_although_unlock_is_refused":         holdEndsAlthoughUnlockIsRefused,
		"silence_proves_nothing":                       silenceProvesNothing,
		"loss_is_reported_before_the_release":          lossIsReportedBeforeTheRelease,
		"unlock_waits_no_longer_than_the_lock_lives":   unlockWaitsNoLongerThanTheLockLives,
		"close_does_not_wait_for_a_daemon_away":        closeDoesNotWaitForADaemonAway,
	} {
		run := run
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

// lockAt starts a LOCK at the scripted daemon.
func lockAt(t *testing.T, s *scripted, ctx context.Context,
	opts ...Option) (chan *Lock, <-chan error) {
	client := newClient(t, Config{Addresses: []string{s.url()}, Timeout: testTimeout / 6})
	locks := make(chan *Lock, 1)
	return locks, async(func() error {
		lock, err := client.Lock(ctx, "a", opts...)
		locks <- lock
		return err
	})
}

// At the deadline of its context, Lock says so, also if the daemon ends the wait first.
func deadlineOfTheContextEndsTheWait(t *testing.T) {
	for _, test := range []struct {
		opts  []Option
		isEnd bool
	}{
		{nil, true},
		{[]Option{WithWait(time.Second)}, false},
		{[]Option{WithWait(0)}, false},
	} {
		s := newScripted(t)
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		_, done := lockAt(t, s, ctx, test.opts...)
		s.accept()
		tag, _ := s.expect("LOCK")
		s.send(tag + " HELD 900\n")
		err := result(t, done)
		mustBe(t, err, ErrNotAcquired)
		if errors.Is(err, context.DeadlineExceeded) != test.isEnd {
			t.Error(err)
		}
		cancel()
	}
}

func (s *scripted) expectUnlock() {
	s.t.Helper()
	tag, rest := s.expect("UNLOCK")
	if rest != "a "+token {
		s.t.Errorf("UNLOCK %s", rest)
	}
	s.send(tag + " OK\n")
}

func lateOnArrival(t *testing.T) {
	for _, test := range []struct {
		reply string
		held  bool
	}{
		{"OK " + token + " 20000 0", true},
		{"OK " + token + " 0 0", false},
		{"GONE", false},
		{"NOQUORUM 1/3 need=2", false},
		{"LATE 100", false},
	} {
		s := newScripted(t)
		locks, done := lockAt(t, s, background(t))
		s.accept()
		tag, _ := s.expect("LOCK")
		s.send(tag + " OK " + token + " 0 0 -\n")
		tag, rest := s.expect("EXTEND")
		if rest != "a "+token+" 30000" {
			t.Errorf("EXTEND %s", rest)
		}
		s.send(tag + " " + test.reply + "\n")
		if test.held {
			must(t, result(t, done))
			if lock := <-locks; lock.Remaining() <= 0 || lock.Remaining() > 20*time.Second {
				t.Error(lock.Remaining())
			}
			continue
		}
		s.expectUnlock()
		mustBe(t, result(t, done), ErrNotAcquired)
		if <-locks != nil {
			t.Error("a lock is returned")
		}
	}
}

func lateReplyIsReleased(t *testing.T) {
	s := newScripted(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, done := lockAt(t, s, ctx, WithWait(time.Second))
	s.accept()
	tag, _ := s.expect("LOCK")
	cancel()
	mustBe(t, result(t, done), context.Canceled)
	s.send(tag + " OK " + token + " 20000 0 -\n")
	s.expectUnlock()
}

// The client ends a connection that has only a cancelled LOCK, but reads it to its end: the OK can
// already be under way.
func lateReplyAfterQuit(t *testing.T) {
	s := newScripted(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, done := lockAt(t, s, ctx)
	s.accept()
	tag, _ := s.expect("LOCK")
	cancel()
	mustBe(t, result(t, done), context.Canceled)
	quit, _ := s.expect("QUIT")
	s.send(tag + " OK " + token + " 20000 0 -\n" + quit + " BYE\n")
	s.conn.Close()
	s.accept()
	s.expectUnlock()
}

// Close does not leave behind a lock whose OK crosses its QUIT.
func lateReplyAfterClose(t *testing.T) {
	s := newScripted(t)
	client := newClient(t, Config{Addresses: []string{s.url()}})
	done := async(func() error {
		_, err := client.Lock(background(t), "a")
		return err
	})
	s.accept()
	tag, _ := s.expect("LOCK")
	closed := async(client.Close)
	quit, _ := s.expect("QUIT")
	s.send(tag + " OK " + token + " 20000 0 -\n" + quit + " BYE\n")
	s.conn.Close()
	mustBe(t, result(t, done), ErrUnavailable)
	s.accept()
	s.expectUnlock()
	quit, _ = s.expect("QUIT")
	s.send(quit + " BYE\n")
	s.conn.Close()
	must(t, result(t, closed))
}

// Close releases what LockAll has acquired, if it still waits for the others.
func closeReleasesOneOfSeveral(t *testing.T) {
	s := newScripted(t)
	client := newClient(t, Config{Addresses: []string{s.url()}})
	done := async(func() error {
		_, err := client.LockAll(background(t), []string{"a", "b"})
		return err
	})
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 29000 0 -\n")
	s.expect("LOCK")
	closed := async(client.Close)
	s.expectUnlock()
	quit, _ := s.expect("QUIT")
	s.send(quit + " BYE\n")
	s.conn.Close()
	mustBe(t, result(t, done), ErrUnavailable)
	must(t, result(t, closed))
}

// A request that found no connection uses the one that was opened meanwhile.
func oneConnectionIsEnough(t *testing.T) {
	s := newScripted(t)
	client := newClient(t, Config{Addresses: []string{s.url()}})
	connected := async(func() error { return client.connect(background(t), nil) })
	s.accept()
	must(t, result(t, connected))
	must(t, client.connect(background(t), nil))
	client.mu.Lock()
	if n := len(client.conns); n != 1 {
		t.Errorf("%d connections", n)
	}
	client.mu.Unlock()
	s.conn.Close()
}

// LATE does not end a wait.
func lockAgainAfterLate(t *testing.T) {
	s := newScripted(t)
	_, done := lockAt(t, s, background(t), WithWait(0))
	s.accept()
	answer := func(reply string) (rest string) {
		tag, rest := s.expect("LOCK")
		s.send(tag + " " + reply + "\n")
		return rest
	}
	answer("LATE 900")
	mustBe(t, result(t, done), ErrNotAcquired)

	_, done = lockAt(t, s, background(t), WithWait(testTimeout))
	s.accept()
	first := answer("LATE 900")
	second := answer("LATE 900") // waits for the rest of the time
	if !strings.HasPrefix(second, "a 30000 WAIT ") || second == first {
		t.Errorf("LOCK %s, then %s", first, second)
	}
	answer("OK " + token + " 20000 0 -")
	must(t, result(t, done))
}

func unlockAgain(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t))
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 20000 0 -\n")
	must(t, result(t, done))
	lock := <-locks

	extended := async(func() error { return lock.Extend(background(t), 25*time.Second) })
	_, first := s.expect("EXTEND")
	s.conn.Close()
	s.accept()
	tag, second := s.expect("EXTEND")
	if first != second {
		t.Errorf("EXTEND %s, then %s", first, second)
	}
	s.send(tag + " OK " + token + " 24000 0\n")
	must(t, result(t, extended))

	unlocked := async(func() error { return lock.Unlock(background(t)) })
	_, first = s.expect("UNLOCK")
	s.conn.Close()
	s.accept()
	tag, second = s.expect("UNLOCK")
	if first != second {
		t.Errorf("UNLOCK %s, then %s", first, second)
	}
	s.send(tag + " GONE\n") // the first one was carried out
	must(t, result(t, unlocked))
}

// An EXTEND without a reply is not sent again once UNLOCK was sent.
func noExtendAfterUnlock(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t))
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 20000 0 -\n")
	must(t, result(t, done))
	lock := <-locks

	extended := async(func() error { return lock.Extend(background(t), 25*time.Second) })
	s.expect("EXTEND")
	unlocked := async(func() error { return lock.Unlock(background(t)) })
	s.expect("UNLOCK")
	s.conn.Close()
	s.accept()
	s.expectUnlock() // and no EXTEND before it
	must(t, result(t, unlocked))
	mustBe(t, result(t, extended), ErrUnlocked) // nor after it
}

func daemonAway(t *testing.T) {
	s := newScripted(t)
	timeout := 2 * time.Second
	client := newClient(t, Config{Addresses: []string{s.url()}, Timeout: timeout})
	done := async(func() error {
		_, err := client.Lock(context.Background(), "a", WithWait(testTimeout))
		return err
	})
	s.accept()
	s.expect("LOCK")
	s.conn.Close()
	back := time.Now().Add(3 * timeout)
	s.listener.(*net.TCPListener).SetDeadline(back)
	for time.Now().Before(back) {
		if conn, err := s.listener.Accept(); err == nil {
			conn.Close()
		}
	}
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 20000 0 -\n")
	must(t, result(t, done))
}

func limit(t *testing.T) {
	s := newScripted(t)
	limited := func(done <-chan error, name string) {
		err := result(t, done)
		mustBe(t, err, ErrUnavailable)
		if !strings.HasSuffix(err.Error(), name) {
			t.Error(err)
		}
	}
	client := newClient(t, Config{Addresses: []string{s.url()}})
	locks := make(chan *Lock, 2)
	lockAsync := func() <-chan error {
		return async(func() error {
			lock, err := client.Lock(background(t), "a", WithTTL(6*time.Second), WithAutoExtend())
			locks <- lock
			return err
		})
	}
	done := lockAsync()
	s.accept()
	answer := func(verb, reply string) {
		tag, _ := s.expect(verb)
		s.send(tag + " " + reply + "\n")
	}
	answer("LOCK", "LIMIT waiters")
	limited(done, "waiters")
	<-locks
	done = lockAsync()
	answer("LOCK", "OK "+token+" 5900 0 -")
	must(t, result(t, done))
	lock := <-locks
	done = async(func() error { return lock.Extend(background(t), 6*time.Second) })
	answer("EXTEND", "LIMIT operations")
	limited(done, "operations")
	answer("EXTEND", "LIMIT hold")
	answer("EXTEND", "OK "+token+" 5900 0")
	must(t, lock.Err())
	done = async(func() error { return lock.Unlock(background(t)) })
	answer("UNLOCK", "LIMIT operations")
	answer("UNLOCK", "OK")
	must(t, result(t, done))
}

func truncatedReply(t *testing.T) {
	for _, text := range []string{" OK " + token + " 2", " OK " + token + " 20000 0 -"} {
		s := newScripted(t)
		_, done := lockAt(t, s, background(t), WithWait(0))
		s.accept()
		tag, _ := s.expect("LOCK")
		s.send(tag + text)
		s.conn.Close()
		s.accept()
		tag, _ = s.expect("LOCK")
		s.send(tag + " HELD 1000\n")
		mustBe(t, result(t, done), ErrNotAcquired)
	}
}

// What is not the protocol of redlockd ends the connection, and grants nothing.
func garbage(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 400 Bad Request\n",
		"#99 OK " + token + " 20000 0 -\n",
		"#1 OK " + token + " 30001 0 -\n",
		"#1 OK " + token + " 20000\n",
		"#x OK\n",
		"#p PONG\n",
		"\n",
	} {
		s := newScripted(t)
		_, done := lockAt(t, s, background(t), WithWait(0))
		s.accept()
		s.expect("LOCK")
		s.send(text)
		s.accept()
		tag, _ := s.expect("LOCK")
		s.send(tag + " HELD 1000\n")
		mustBe(t, result(t, done), ErrNotAcquired)
	}
}

// A reply on a connection that was given up must not touch the lock that the same call got later.
// (The connection stays, because the daemon may still keep a HOLD of it.)
func replyOnGivenUpConnection(t *testing.T) {
	s := newScripted(t)
	client := newClient(t, Config{Addresses: []string{s.url()}, Timeout: 2 * time.Second})
	lockAsync := func(name string, opts ...Option) (chan *Lock, <-chan error) {
		locks := make(chan *Lock, 1)
		return locks, async(func() error {
			lock, err := client.Lock(background(t), name, opts...)
			locks <- lock
			return err
		})
	}
	holds, done := lockAsync("hold", WithHold())
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + strings.Repeat("a", 40) + " 29000 0 -\n")
	must(t, result(t, done))
	hold := <-holds

	locks, done := lockAsync("a")
	tag, _ = s.expect("LOCK")
	silent := *s
	s.accept() // no reply comes, so the client connects again
	other := strings.Repeat("b", 40)
	again, _ := s.expect("LOCK")
	s.send(again + " OK " + other + " 20000 0 -\n")
	must(t, result(t, done))
	lock := <-locks

	silent.send(tag + " OK " + token + " 20000 0 -\n")
	s.expectUnlock() // of that token
	if lock.Token() != other || lock.Err() != nil || hold.Err() != nil {
		t.Error(lock.Token(), lock.Err(), hold.Err())
	}
}

// A HOLD is lost when LOST follows its OK in the same packet, and when its connection breaks.
func holdIsLost(t *testing.T) {
	for _, lost := range []bool{true, false} {
		s := newScripted(t)
		locks, done := lockAt(t, s, background(t), WithHold())
		s.accept()
		tag, _ := s.expect("LOCK")
		text := tag + " OK " + token + " 20000 0 -\n! WARN a " + token + " m0:timeout\n! NEWS\n"
		if lost {
			text += "! LOST a " + token + " overdue\n"
		}
		s.send(text)
		if !lost {
			must(t, result(t, done))
			s.conn.Close()
			ctx := (<-locks).Context()
			cancelled(t, ctx)
			mustBe(t, ctx.Err(), ErrLost)
			if !strings.Contains(ctx.Err().Error(), "connection") {
				t.Error(ctx.Err())
			}
			continue
		}
		if err := result(t, done); err != nil {
			mustBe(t, err, ErrNotAcquired) // LOST was read before Lock returned
			s.expectUnlock()
		} else {
			ctx := (<-locks).Context()
			cancelled(t, ctx)
			if !strings.Contains(ctx.Err().Error(), "stopped or too busy") {
				t.Error(ctx.Err())
			}
		}
	}
}

func lossSaysWhy(t *testing.T) {
	held := "it was held for as long as the daemon allows (max_hold)"
	gone := "the token does not hold it any more"
	for reply, text := range map[string]string{
		"LOST limit":       held,
		"LOST noquorum":    "too few masters could vote",
		"LOST late":        "the masters answered too late",
		"LOST gone":        gone,
		"LOST overdue":     "the daemon was stopped or too busy",
		"LOST shutdown":    "the daemon is stopping",
		"LOST news":        "news",
		"GONE":             gone,
		"LIMIT hold":       held,
		"LIMIT extensions": "it was extended as often as the daemon allows (max_extensions)",
		"NOQUORUM 1/3 need=2 m0:timeout": `not extended in time: redlockd: extend "a": ` +
			"too few masters could vote: 1/3 need=2 m0:timeout",
		"": "not extended in time: ", // and the error of the system
	} {
		s := newScripted(t)
		option, ttl := WithAutoExtend(), 6000 // an extension must fail before the TTL is over
		if strings.HasPrefix(reply, "LOST") {
			option, ttl = WithHold(), 60000 // nothing but LOST may end the lock
		}
		locks, done := lockAt(t, s, background(t), option,
			WithTTL(time.Duration(ttl)*time.Millisecond))
		s.accept()
		tag, _ := s.expect("LOCK")
		s.send(fmt.Sprintf("%s OK %s %d 0 -\n", tag, token, ttl))
		must(t, result(t, done))
		ctx := (<-locks).Context()
		switch {
		case strings.HasPrefix(reply, "LOST"):
			s.send("! LOST a " + token + reply[len("LOST"):] + "\n")
		case reply == "":
			s.refuse()
			s.conn.Close()
		default:
			go s.answerAll(reply)
		}
		cancelled(t, ctx)
		mustBe(t, ctx.Err(), ErrLost)
		if !strings.HasPrefix(ctx.Err().Error(), `redlockd: lock "a": the lock is lost: `+text) {
			t.Errorf("%s: %v", reply, ctx.Err())
		}
		if reply == "" && !strings.Contains(ctx.Err().Error(), s.url()) {
			t.Error(ctx.Err())
		}
	}
}

// The daemon extends a HOLD until it has carried out an UNLOCK, or the connection ends.
func holdEndsAlthoughUnlockIsRefused(t *testing.T) {
	s := newScripted(t)
	client := newClient(t, Config{Addresses: []string{s.url()}, Timeout: 2 * time.Second})
	locks := make(chan *Lock, 1)
	done := async(func() error {
		lock, err := client.Lock(background(t), "a", WithHold(), WithTTL(time.Minute))
		locks <- lock
		return err
	})
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 59000 0 -\n")
	must(t, result(t, done))
	unlocked := async(func() error { return (<-locks).Unlock(background(t)) })
	tag, _ = s.expect("UNLOCK")
	s.send(tag + " DENIED user ci may not use UNLOCK\n")
	mustBe(t, result(t, unlocked), ErrDenied)
	s.expect("QUIT")
}

// lockLong locks at the scripted daemon, through a client with a timeout above that of the test.
func lockLong(t *testing.T, s *scripted, reply string, names []string,
	opts ...Option) (*Client, Locks) {
	client := newClient(t, Config{Addresses: []string{s.url()}, Timeout: 2 * testTimeout})
	var locks Locks
	done := async(func() (err error) {
		locks, err = client.LockAll(context.Background(), names, opts...)
		return err
	})
	s.accept()
	for _, name := range names {
		tag, _ := s.expect("LOCK")
		s.send(tag + " OK " + strings.Repeat(name, 40) + " " + reply + "\n")
	}
	must(t, result(t, done))
	return client, locks
}

// After a loss, the caller waits only for a moment for the replies to UNLOCK. But Close waits for
// them.
func lossIsReportedBeforeTheRelease(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		s := newScripted(t)
		client, locks := lockLong(t, s, "29000 0 -", names, WithHold())
		last := names[len(names)-1]
		s.send("! LOST " + last + " " + strings.Repeat(last, 40) + " noquorum\n")
		cancelled(t, locks.Context())
		unlocked := async(func() error { return locks.Unlock(context.Background()) })
		mustBe(t, result(t, unlocked), ErrLost) // although nothing is answered
		closed := async(client.Close)
		s.conn.Close() // whether UNLOCK was sent once or twice, it is now sent again once
		s.accept()
		for range names {
			tag, _ := s.expect("UNLOCK")
			s.send(tag + " OK\n")
		}
		quit, _ := s.expect("QUIT")
		s.send(quit + " BYE\n")
		s.conn.Close()
		must(t, result(t, closed))
	}
}

func unlockWaitsNoLongerThanTheLockLives(t *testing.T) {
	s := newScripted(t)
	_, locks := lockLong(t, s, "3000 0 -", []string{"a"})
	unlocked := async(func() error { return locks[0].Unlock(context.Background()) })
	s.expect("UNLOCK")
	mustBe(t, result(t, unlocked), ErrUnavailable)
	tag, _ := s.expect("UNLOCK")
	s.send(tag + " OK\n")
}

func closeDoesNotWaitForADaemonAway(t *testing.T) {
	s := newScripted(t)
	client, locks := lockLong(t, s, "29000 0 -", []string{"a"}, WithHold())
	s.refuse()
	s.conn.Close()
	cancelled(t, locks.Context())
	unlocked := async(func() error { return locks.Unlock(context.Background()) })
	mustBe(t, result(t, unlocked), ErrLost)
	must(t, result(t, async(client.Close)))
}

// When the client ends a connection because of garbage, the daemon must not release its HOLDs at
// once: their work may not have stopped yet. A unix socket therefore stays open until the deadline.
func unixSocketStaysOpen(t *testing.T) {
	s := newScripted(t)
	s.listener.Close()
	path := t.TempDir() + "/socket"
	listener, err := net.Listen("unix", path)
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	client := newClient(t, Config{Addresses: []string{"unix:" + path}})
	locks := make(chan *Lock, 1)
	done := async(func() error {
		lock, err := client.Lock(background(t), "a", WithHold())
		locks <- lock
		return err
	})
	s.listener = listener
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 3000 0 -\n")
	must(t, result(t, done))
	lock := <-locks
	ctx := lock.Context()
	s.send("garbage\n")
	cancelled(t, ctx)
	for err = nil; err == nil; {
		_, err = s.lines.ReadString('\n') // PINGs
	}
	if at := now(); err != io.EOF || at < lock.deadline {
		t.Error(err, lock.deadline-at)
	}
}

// An OK to EXTEND after LOST does not bring the lock back.
func lossIsFinal(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t), WithHold())
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 20000 0 -\n")
	must(t, result(t, done))
	lock := <-locks
	extended := async(func() error { return lock.Extend(background(t), 30*time.Second) })
	tag, _ = s.expect("EXTEND")
	s.send("! LOST a " + token + " overdue\n" + tag + " OK " + token + " 29000 0\n")
	mustBe(t, result(t, extended), ErrLost)
	mustBe(t, lock.Err(), ErrLost)
	if remaining := lock.Remaining(); remaining <= 0 || remaining > 20*time.Second {
		t.Error(remaining) // the time that is left to stop
	}
}

func deadlineOf(lock *Lock) int64 {
	lock.mu.Lock()
	defer lock.mu.Unlock()
	return lock.deadline
}

// An automatic extension does not wait for Config.Timeout.
func extensionMovesFromASilentDaemon(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t), WithTTL(4*time.Second), WithAutoExtend())
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 3900 0 -\n")
	must(t, result(t, done))
	lock := <-locks
	first := deadlineOf(lock)
	s.expect("EXTEND")
	s.accept()
	tag, _ = s.expect("EXTEND")
	s.send(tag + " OK " + token + " 3900 0\n")
	eventually(t, "an extension", func() bool {
		must(t, lock.Err())
		return deadlineOf(lock) > first
	})
}

// Nor does it wait for a connection to a daemon that is silent or stops: the kernel accepts that one.
func extensionMovesToAnotherDaemon(t *testing.T) {
	for _, reply := range []string{"", "SHUTDOWN"} {
		s, other := newScripted(t), newScripted(t)
		client := newClient(t, Config{Addresses: []string{s.url(), other.url()}})
		locks := make(chan *Lock, 1)
		done := async(func() error {
			lock, err := client.Lock(background(t), "a", WithTTL(4*time.Second), WithAutoExtend())
			locks <- lock
			return err
		})
		s.accept()
		tag, _ := s.expect("LOCK")
		s.send(tag + " OK " + token + " 3900 0 -\n")
		must(t, result(t, done))
		lock := <-locks
		first := deadlineOf(lock)
		tag, _ = s.expect("EXTEND")
		if reply != "" {
			s.send(tag + " " + reply + "\n")
		}
		other.accept()
		must(t, lock.Err())
		tag, _ = other.expect("EXTEND")
		other.send(tag + " OK " + token + " 3900 0\n")
		eventually(t, "an extension", func() bool {
			must(t, lock.Err())
			return deadlineOf(lock) > first
		})
	}
}

// If each reply comes after the next EXTEND was sent, the lock lives on.
func lateExtensionsCount(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t), WithTTL(4*time.Second), WithAutoExtend())
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 3900 0 -\n")
	must(t, result(t, done))
	lock := <-locks
	granted := deadlineOf(lock)
	first, _ := s.expect("EXTEND")
	s.send("! NEWS\n") // so the connection is not silent
	eventually(t, "the end of the first attempt", func() bool {
		lock.mu.Lock()
		defer lock.mu.Unlock()
		return lock.failure != nil
	})
	s.send(first + " OK " + token + " 3900 0\n")
	eventually(t, "an extension", func() bool {
		must(t, lock.Err())
		return deadlineOf(lock) > granted
	})
}

// GONE counts, also after the EXTEND was given up.
func lateGoneCounts(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t), WithTTL(time.Minute))
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 59000 0 -\n")
	must(t, result(t, done))
	lock := <-locks
	ctx, cancel := context.WithCancel(context.Background())
	extended := async(func() error { return lock.Extend(ctx, time.Minute) })
	tag, _ = s.expect("EXTEND")
	cancel()
	mustBe(t, result(t, extended), ErrUnavailable)
	must(t, lock.Err())
	s.send(tag + " GONE\n")
	cancelled(t, lock.Context())
	mustBe(t, lock.Err(), ErrLost)
	if lock.Remaining() != 0 {
		t.Error(lock.Remaining())
	}
}

// The error of the context says that the lock is lost, for several locks too. Code that knows only
// package context takes it for a cancellation.
func contextsSayWhy(t *testing.T) {
	s := newScripted(t)
	client := newClient(t, Config{Addresses: []string{s.url()}})
	var locks Locks
	done := async(func() (err error) {
		locks, err = client.LockAll(background(t), []string{"a", "b"}, WithTTL(time.Minute))
		return err
	})
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + strings.Repeat("a", 40) + " 59000 0 -\n")
	tag, _ = s.expect("LOCK")
	s.send(tag + " OK " + strings.Repeat("b", 40) + " 59000 0 -\n")
	must(t, result(t, done))
	contexts := []context.Context{locks[0].Context(), locks.Context()}
	extended := async(func() error { return locks[0].Extend(background(t), time.Minute) })
	tag, _ = s.expect("EXTEND")
	s.send(tag + " GONE\n")
	mustBe(t, result(t, extended), ErrLost)
	for _, ctx := range contexts {
		cancelled(t, ctx)
		mustBe(t, ctx.Err(), ErrLost)
		mustBe(t, ctx.Err(), context.Canceled)
	}
	if err := locks[0].Err(); errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The time that the reply takes shortens the lock.
func deadlineIsComputedFromBeforeTheRequest(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t))
	s.accept()
	tag, _ := s.expect("LOCK")
	arrived := now()
	s.send(tag + " OK " + token + " 20000 0 -\n")
	must(t, result(t, done))
	if lock := <-locks; lock.deadline > arrived+20e9 {
		t.Error(lock.deadline - arrived)
	}
}

// Each PONG proves the HOLD for a third of the TTL after its PING, and silence proves nothing.
func silenceProvesNothing(t *testing.T) {
	s := newScripted(t)
	locks, done := lockAt(t, s, background(t), WithHold(), WithTTL(9*time.Second))
	s.accept()
	tag, _ := s.expect("LOCK")
	s.send(tag + " OK " + token + " 2500 0 -\n") // so the first proof counts at once
	must(t, result(t, done))
	lock := <-locks
	ctx := lock.Context()
	first := deadlineOf(lock)
	s.expect("PING")
	s.send("#p PONG\n")
	eventually(t, "a proof", func() bool { return deadlineOf(lock) > first })
	if lock.Remaining() > 3*time.Second {
		t.Error(lock.Remaining())
	}
	// An EXTEND does not change the TTL with which the daemon keeps the HOLD.
	extended := async(func() error { return lock.Extend(background(t), time.Minute) })
	tag, _ = s.expect("EXTEND")
	s.send(tag + " OK " + token + " 0 0\n")
	must(t, result(t, extended))
	second := deadlineOf(lock)
	s.expect("PING")
	s.send("#p PONG\n")
	eventually(t, "another proof", func() bool { return deadlineOf(lock) > second })
	if lock.Remaining() > 3*time.Second {
		t.Error(lock.Remaining())
	}
	cancelled(t, ctx)
	mustBe(t, lock.Err(), ErrLost)
	s.send("#p PONG\n") // too late: the loss is final
	if lock.Remaining() != 0 || lock.Err() == nil {
		t.Error(lock.Remaining(), lock.Err())
	}
}
