package redlockd

// The scenarios of client/scenarios.md. Each subtest has the name of a row.

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

type scenario struct {
	name string
	run  func(*testing.T, *cluster)
}

// play runs scenarios on one cluster: all at once if they leave its servers alone.
func play(t *testing.T, options string, atOnce bool, scenarios []scenario) {
	t.Parallel()
	c := startCluster(t, options)
	for _, s := range scenarios {
		s := s
		t.Run(s.name, func(t *testing.T) {
			if atOnce {
				t.Parallel()
			}
			s.run(t, c)
		})
	}
}

func TestLocks(t *testing.T) {
	play(t, `{"tls": true}`, true, []scenario{
		{"lock_and_unlock", lockAndUnlock},
		{"contention", contention},
		{"try_lock", tryLock},
		{"wait", waitInQueue},
		{"wait_times_out", waitTimesOut},
		{"cancel_while_waiting", cancelWhileWaiting},
		{"many_locks", manyLocks},
		{"wrong_arguments", wrongArguments},
		{"fencing", fencing},
		{"slots", slots},
		{"several_resources", severalResources},
		{"several_resources_are_extended", severalResourcesAreExtended},
		{"extend", extend},
		{"extend_after_unlock", extendAfterUnlock},
		{"automatic_extension", automaticExtension},
		{"hold", hold},
		{"deadline_passes", deadlinePasses},
		{"break_hold", breakHold},
		{"break_automatic", breakAutomatic},
		{"client_suspended", clientSuspended},
		{"tcp", tcpAddress},
		{"unix", unixAddress},
		{"tls", tlsAddress},
		{"tls_hold_ends_cleanly", tlsHoldEndsCleanly},
		{"name", connectionName},
		{"no_daemon", noDaemon},
		{"close_while_waiting", closeWhileWaiting},
		{"ttl_too_long", ttlTooLong},
		{"context_of_lock", contextOfLock},
		{"unlock_without_context", unlockWithoutContext},
		{"more_requests_than_a_connection_takes", moreRequestsThanAConnectionTakes},
	})
}

func TestUsers(t *testing.T) {
	play(t, `{"users": true}`, true, []scenario{
		{"secret", rightSecret},
		{"wrong_secret", wrongSecret},
	})
}

func TestMasters(t *testing.T) {
	play(t, `{}`, false, []scenario{
		{"masters_cut_hold", mastersCutHold},
		{"masters_cut_automatic", mastersCutAutomatic},
		{"lost_in_time", lostInTime},
		{"no_quorum", noQuorum},
	})
}

func TestDaemons(t *testing.T) {
	play(t, `{"daemons": 2}`, false, []scenario{
		{"daemon_paused", daemonPaused},
		{"daemon_paused_second_daemon", daemonPausedSecondDaemon},
		{"daemon_killed_hold", daemonKilledHold},
		{"daemon_killed_automatic", daemonKilledAutomatic},
		{"second_daemon", secondDaemon},
		{"daemon_stops", daemonStops},
		{"waiter_moves", waiterMoves},
	})
}

// lockIt acquires a lock with a TTL that is longer than the limit of time of the test, so that the end
// of the TTL cannot hide a mistake.
func lockIt(t *testing.T, client *Client, resource string, opts ...Option) *Lock {
	t.Helper()
	opts = append([]Option{WithTTL(2 * testTimeout)}, opts...)
	lock, err := client.Lock(background(t), resource, opts...)
	must(t, err)
	return lock
}

// --- acquire and release ---

func lockAndUnlock(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "lock-and-unlock", WithTTL(20*time.Second))
	if c.isFree(t, "lock-and-unlock") {
		t.Error("not held")
	}
	if remaining := lock.Remaining(); remaining <= 0 || remaining > 20*time.Second {
		t.Errorf("remaining: %v", remaining)
	}
	if !isToken(lock.Token()) || lock.Err() != nil || lock.Fence() != 0 {
		t.Errorf("token %q, error %v, fence %d", lock.Token(), lock.Err(), lock.Fence())
	}
	must(t, lock.Unlock(background(t)))
	if !c.isFree(t, "lock-and-unlock") || lock.Remaining() != 0 {
		t.Errorf("not free, or remaining: %v", lock.Remaining())
	}
	mustBe(t, lock.Err(), ErrUnlocked)
	must(t, lock.Unlock(background(t))) // the second call does nothing
	mustBe(t, lock.Extend(background(t), time.Second), ErrUnlocked)
}

func contention(t *testing.T, c *cluster) {
	client := c.client(t, false)
	var inside, most, granted int32
	var all sync.WaitGroup
	for i := 0; i < 16; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			lock, err := client.Lock(background(t), "contention", WithWait(testTimeout))
			if err != nil {
				t.Error(err)
				return
			}
			if n := atomic.AddInt32(&inside, 1); n > 1 {
				atomic.StoreInt32(&most, n)
			}
			time.Sleep(time.Millisecond) // a chance for others to be inside as well
			atomic.AddInt32(&inside, -1)
			atomic.AddInt32(&granted, 1)
			if err := lock.Unlock(background(t)); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if most > 1 || granted != 16 {
		t.Errorf("%d inside, %d granted", most, granted)
	}
}

func tryLock(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "try-lock")
	other := c.client(t, false)
	_, err := other.TryLock(background(t), "try-lock")
	mustBe(t, err, ErrNotAcquired)
	if e := err.(*Error); e.Hint <= 0 || e.Hint > 2*testTimeout {
		t.Errorf("hint: %v", e.Hint)
	}
	must(t, lock.Unlock(background(t)))
	_, err = other.TryLock(background(t), "try-lock")
	must(t, err)
}

func waitInQueue(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "wait")
	done := async(func() error {
		_, err := c.client(t, false).Lock(background(t), "wait")
		return err
	})
	eventually(t, "a waiter", func() bool { return c.waiters(t, 0, "wait") == "1" })
	must(t, lock.Unlock(background(t)))
	must(t, result(t, done))
}

func waitTimesOut(t *testing.T, c *cluster) {
	client := c.client(t, false)
	lockIt(t, client, "wait-times-out")
	_, err := client.Lock(background(t), "wait-times-out", WithWait(300*time.Millisecond))
	mustBe(t, err, ErrNotAcquired)
	eventually(t, "no waiter", func() bool { return c.waiters(t, 0, "wait-times-out") == "0" })

	// The deadline of the context is the default wait.
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err = client.Lock(ctx, "wait-times-out")
	mustBe(t, err, ErrNotAcquired)
	eventually(t, "no waiter", func() bool { return c.waiters(t, 0, "wait-times-out") == "0" })
}

// With another lock that is held, the client keeps the connection and releases the lock when it is
// granted. Without any, it ends the connection.
func cancelWhileWaiting(t *testing.T, c *cluster) {
	for _, busy := range []bool{true, false} {
		name := fmt.Sprintf("cancel-while-waiting-%v", busy)
		client, other := c.client(t, false), c.client(t, false)
		lock := lockIt(t, other, name)
		var held *Lock
		if busy {
			held = lockIt(t, client, name+"-held", WithHold())
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := async(func() error {
			_, err := client.Lock(ctx, name)
			return err
		})
		eventually(t, "a waiter", func() bool { return c.waiters(t, 0, name) == "1" })
		cancel()
		err := result(t, done)
		mustBe(t, err, context.Canceled)
		mustBe(t, err, ErrNotAcquired)
		if !busy {
			eventually(t, "no waiter", func() bool { return c.waiters(t, 0, name) == "0" })
		}
		must(t, lock.Unlock(background(t)))
		again := lockIt(t, other, name, WithWait(testTimeout))
		must(t, again.Unlock(background(t)))
		if busy && held.Err() != nil {
			t.Error(held.Err())
		}
	}
}

func manyLocks(t *testing.T, c *cluster) {
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].TCP}, Name: "many"})
	locks := make([]*Lock, 1000)
	tokens := make(map[string]bool)
	onEach := func(f func(i int) error) {
		dones := make([]<-chan error, len(locks))
		for i := range locks {
			i := i
			dones[i] = async(func() error { return f(i) })
		}
		for _, done := range dones {
			must(t, result(t, done))
		}
	}
	onEach(func(i int) (err error) {
		locks[i], err = client.Lock(background(t), fmt.Sprintf("many-%d", i))
		return err
	})
	if n := strings.Count(strings.Join(c.ask(t, 0, "CLIENTS"), "\n"), "name=many "); n != 1 {
		t.Errorf("%d connections", n)
	}
	for _, lock := range locks {
		tokens[lock.Token()] = true
	}
	onEach(func(i int) error { return locks[i].Unlock(background(t)) })
	if len(tokens) != len(locks) {
		t.Errorf("%d tokens", len(tokens))
	}
	if strings.Contains(strings.Join(c.ask(t, 0, "LOCKS"), "\n"), "resource=many-") {
		t.Error("not all are free")
	}
}

// Nothing listens at the address, so a request that were sent would fail differently.
func wrongArguments(t *testing.T, _ *cluster) {
	client := newClient(t, Config{Addresses: []string{"tcp://127.0.0.1:1"}})
	for _, name := range []string{"", "a b", "a\nb", "a\r", "\x7f", strings.Repeat("x", 257)} {
		_, err := client.Lock(background(t), name)
		mustBe(t, err, ErrInvalid)
		_, err = client.LockAll(background(t), []string{"fine", name})
		mustBe(t, err, ErrInvalid)
	}
	for _, option := range []Option{
		WithTTL(-time.Second), WithTTL(0), WithWait(-1), WithWait(25 * time.Hour),
		WithSlots(0), WithSlots(1001), WithSlots(-1),
	} {
		_, err := client.Lock(background(t), "wrong", option)
		mustBe(t, err, ErrInvalid)
	}
	_, err := client.LockAll(background(t), nil)
	mustBe(t, err, ErrInvalid)
}

func fencing(t *testing.T, c *cluster) {
	client := c.client(t, false)
	first := lockIt(t, client, "fencing", WithFence())
	must(t, first.Unlock(background(t)))
	second := lockIt(t, client, "fencing", WithFence())
	if first.Fence() <= 0 || second.Fence() <= first.Fence() {
		t.Errorf("fences: %d, %d", first.Fence(), second.Fence())
	}
}

func slots(t *testing.T, c *cluster) {
	client := c.client(t, false)
	first := lockIt(t, client, "slots", WithSlots(2))
	second := lockIt(t, client, "slots", WithSlots(2))
	if both := first.Resource() + second.Resource(); both != "slots#1slots#2" &&
		both != "slots#2slots#1" {
		t.Error(both)
	}
	_, err := client.TryLock(background(t), "slots", WithSlots(2))
	mustBe(t, err, ErrNotAcquired)
	must(t, first.Extend(background(t), 20*time.Second))
	must(t, first.Unlock(background(t)))
	third := lockIt(t, client, "slots", WithSlots(2))
	if third.Resource() != first.Resource() {
		t.Error(third.Resource())
	}
}

func severalResources(t *testing.T, c *cluster) {
	client, other := c.client(t, false), c.client(t, false)
	names := []string{"several-b", "several-a", "several-ä", "several-a"}
	locks, err := client.LockAll(background(t), names, WithFence())
	must(t, err)
	var order []string
	for _, lock := range locks {
		order = append(order, lock.Resource())
	}
	if fmt.Sprint(order) != "[several-a several-b several-ä]" {
		t.Error(order)
	}
	if locks.Err() != nil || locks.Remaining() <= 0 {
		t.Error(locks.Err(), locks.Remaining())
	}
	must(t, locks.Extend(background(t), 20*time.Second))
	must(t, locks.Unlock(background(t)))
	cancelled(t, locks.Context())

	lock := lockIt(t, other, "several-b")
	_, err = client.LockAll(background(t), names, WithWait(0))
	mustBe(t, err, ErrNotAcquired)
	if !c.isFree(t, "several-a") || !c.isFree(t, "several-ä") {
		t.Error("not free")
	}
	must(t, lock.Unlock(background(t)))

	// A loss of one of them cancels the work.
	locks, err = client.LockAll(background(t), names, WithHold())
	must(t, err)
	ctx := locks.Context()
	c.breakLock(t, "several-b")
	cancelled(t, ctx)
	mustBe(t, locks.Err(), ErrLost)
	mustBe(t, locks.Unlock(background(t)), ErrLost)
	eventually(t, "free", func() bool { return c.isFree(t, "several-a") })
}

// The wait for the second lock takes longer than the TTL of the first one.
func severalResourcesAreExtended(t *testing.T, c *cluster) {
	client, other := c.client(t, false), c.client(t, false)
	blocking := lockIt(t, other, "extended-b")
	start := now()
	done := async(func() error {
		locks, err := client.LockAll(background(t), []string{"extended-a", "extended-b"},
			WithTTL(3*time.Second))
		if err != nil {
			return err
		}
		ctx := locks.Context()
		cancelled(t, ctx) // they are not extended any more
		return locks.Err()
	})
	eventually(t, "a waiter", func() bool { return c.waiters(t, 0, "extended-b") == "1" })
	eventually(t, "more than the TTL", func() bool { return now()-start > 4e9 })
	if c.isFree(t, "extended-a") {
		t.Error("not extended")
	}
	must(t, blocking.Unlock(background(t)))
	mustBe(t, result(t, done), ErrLost)
}

// --- extend ---

func extend(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "extend", WithTTL(2*time.Second))
	must(t, lock.Extend(background(t), 20*time.Second))
	if lock.Remaining() <= 10*time.Second || c.isFree(t, "extend") {
		t.Error(lock.Remaining())
	}
	before := lock.Remaining()
	must(t, lock.Extend(background(t), 2*time.Second)) // never shortens
	if lock.Remaining() < before-5*time.Second {
		t.Error(lock.Remaining())
	}
	mustBe(t, lock.Extend(background(t), 2*time.Hour), ErrInvalid)
	must(t, lock.Err())
}

func extendAfterUnlock(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "extend-after-unlock", WithTTL(60*time.Second))
	ctx := lock.Context()
	c.ask(t, 0, "UNLOCK extend-after-unlock "+lock.Token())
	mustBe(t, lock.Extend(background(t), 20*time.Second), ErrLost)
	cancelled(t, ctx)
	mustBe(t, ctx.Err(), ErrLost)
	mustBe(t, lock.Err(), ErrLost)
	mustBe(t, lock.Unlock(background(t)), ErrLost)
	if lock.Remaining() != 0 {
		t.Error(lock.Remaining())
	}
}

func automaticExtension(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "automatic", WithTTL(7*time.Second),
		WithAutoExtend())
	holdsFor(t, c, lock, 8*time.Second)
	must(t, lock.Unlock(background(t)))
}

func hold(t *testing.T, c *cluster) {
	client := c.client(t, false)
	lock := lockIt(t, client, "hold", WithTTL(7*time.Second), WithHold())
	holdsFor(t, c, lock, 8*time.Second)
	must(t, client.Close())
	mustBe(t, lock.Err(), ErrLost)
	if !c.isFree(t, "hold") {
		t.Error("not free")
	}
}

// holdsFor checks that the lock is never lost for a while, and that others do not get it.
func holdsFor(t *testing.T, c *cluster, lock *Lock, d time.Duration) {
	t.Helper()
	other := c.client(t, false)
	ctx := lock.Context()
	for start := now(); now()-start < int64(d); {
		_, err := other.Lock(background(t), lock.Resource(), WithWait(100*time.Millisecond))
		if err == nil {
			t.Fatal("another client has the lock")
		}
		must(t, ctx.Err())
		must(t, lock.Err())
		if lock.Remaining() <= 0 {
			t.Error("nothing remains")
		}
	}
}

func deadlinePasses(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "deadline-passes", WithTTL(2*time.Second))
	ctx := lock.Context()
	cancelledInTime(t, lock, ctx)
	mustBe(t, ctx.Err(), ErrLost)
	mustBe(t, lock.Err(), ErrLost)
	mustBe(t, lock.Extend(background(t), time.Second), ErrLost)
	mustBe(t, lock.Unlock(background(t)), ErrLost)
}

func contextOfLock(t *testing.T, c *cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	lock, err := c.client(t, false).Lock(ctx, "context-of-lock")
	must(t, err)
	work := lock.Context()
	must(t, work.Err())
	if work != lock.Context() {
		t.Error("not the same context")
	}
	child, end := context.WithCancel(work)
	defer end()
	cancel()
	cancelled(t, child)
	if work.Err() != context.Canceled {
		t.Error(work.Err())
	}
	must(t, lock.Err()) // still held: the work may have to be undone under it
	must(t, lock.Unlock(background(t)))
	cancelled(t, lock.Context())
}

// A deferred Unlock often has a context that has ended.
func unlockWithoutContext(t *testing.T, c *cluster) {
	client := c.client(t, false)
	lock := lockIt(t, client, "unlock-without-context", WithTTL(60*time.Second))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	mustBe(t, lock.Unlock(ctx), context.Canceled)
	must(t, client.Close()) // waits for it
	if !c.isFree(t, "unlock-without-context") {
		t.Error("not free")
	}
}

func moreRequestsThanAConnectionTakes(t *testing.T, c *cluster) {
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].TCP}, Name: "more"})
	locks := []*Lock{
		lockIt(t, c.client(t, false), "more-0"), lockIt(t, c.client(t, false), "more-1"),
	}
	ctx, cancel := context.WithCancel(context.Background())
	var dones []<-chan error
	for i := 0; i < 1500; i++ {
		name := fmt.Sprintf("more-%d", i%2)
		dones = append(dones, async(func() error {
			_, err := client.Lock(ctx, name)
			return err
		}))
	}
	waiters := func(n string) bool {
		return c.waiters(t, 0, "more-0") == n && c.waiters(t, 0, "more-1") == n
	}
	eventually(t, "1500 waiters", func() bool { return waiters("750") })
	must(t, lockIt(t, client, "more-else").Unlock(background(t)))
	cancel()
	for _, done := range dones {
		mustBe(t, result(t, done), context.Canceled)
	}
	// The connections end, since nothing relies on them any more.
	eventually(t, "no waiter", func() bool { return waiters("0") })
	for _, lock := range locks {
		must(t, lock.Unlock(background(t)))
	}
}

// --- loss ---

func breakHold(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "break-hold", WithHold())
	ctx := lock.Context()
	c.breakLock(t, "break-hold")
	cancelled(t, ctx)
	mustBe(t, lock.Err(), ErrLost)
	if !strings.Contains(lock.Err().Error(), "is lost") || lock.Remaining() != 0 {
		t.Error(lock.Err(), lock.Remaining())
	}
}

func breakAutomatic(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "break-automatic", WithTTL(6*time.Second),
		WithAutoExtend())
	ctx := lock.Context()
	c.breakLock(t, "break-automatic")
	cancelled(t, ctx)
	mustBe(t, ctx.Err(), ErrLost)
	if text := lock.Err().(*Error).Text; !strings.Contains(text, "token") {
		t.Error(text)
	}
}

func mastersCutHold(t *testing.T, c *cluster) {
	losesHold(t, c, "masters-cut-hold", 4500*time.Millisecond)
}

func lostInTime(t *testing.T, c *cluster) {
	losesHold(t, c, "lost-in-time", 6*time.Second)
}

func losesHold(t *testing.T, c *cluster, name string, ttl time.Duration) {
	lock := lockIt(t, c.client(t, false), name, WithTTL(ttl), WithHold())
	ctx := lock.Context()
	cutMasters(t, c)
	cancelled(t, ctx)
	if lock.Remaining() <= 0 || !strings.Contains(ctx.Err().Error(), "is lost") {
		t.Error(lock.Remaining(), ctx.Err())
	}
	mustBe(t, lock.Err(), ErrLost)
}

func mastersCutAutomatic(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "masters-cut-automatic", WithTTL(12*time.Second),
		WithAutoExtend())
	ctx := lock.Context()
	cutMasters(t, c)
	cancelled(t, ctx)
	mustBe(t, lock.Err(), ErrLost)
	if lock.Remaining() <= 0 {
		t.Error("after the deadline")
	}
	mustBe(t, lock.Err(), ErrNoQuorum) // the reason why it could not be extended
}

func cutMasters(t *testing.T, c *cluster) {
	t.Cleanup(func() {
		c.do(t, "heal-masters")
		client := c.client(t, false)
		eventually(t, "a quorum", func() bool {
			_, err := client.TryLock(background(t), "healed", WithSlots(1000))
			return err == nil
		})
	})
	c.do(t, "cut-masters")
}

func noQuorum(t *testing.T, c *cluster) {
	client := c.client(t, false)
	cutMasters(t, c)
	var err error
	eventually(t, "no quorum", func() bool {
		_, err = client.TryLock(background(t), "no-quorum")
		return err != nil
	})
	mustBe(t, err, ErrNoQuorum)
	if !strings.Contains(err.Error(), "m0:") {
		t.Errorf("no reasons: %v", err)
	}
	c.do(t, "heal-masters")
	lock := lockIt(t, client, "no-quorum", WithWait(testTimeout))
	must(t, lock.Unlock(background(t)))
}

func daemonPaused(t *testing.T, c *cluster) {
	// The timeout is long, so that the end of a silent connection does not cancel the work instead.
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].TCP}, Timeout: testTimeout})
	lock := lockIt(t, client, "daemon-paused", WithTTL(3*time.Second), WithHold())
	ctx := lock.Context()
	c.do(t, "pause-daemon 0")
	defer c.do(t, "continue-daemon 0")
	cancelledInTime(t, lock, ctx)
	mustBe(t, lock.Err(), ErrLost)
	if lock.Remaining() != 0 {
		t.Error(lock.Remaining())
	}
}

// A daemon that does not answer is left for the second one, also by requests that are under way.
func daemonPausedSecondDaemon(t *testing.T, c *cluster) {
	client := newClient(t, Config{
		Addresses: []string{c.Daemons[0].TCP, c.Daemons[1].TCP},
		Timeout:   2 * time.Second,
	})
	held := lockIt(t, client, "paused-hold", WithTTL(60*time.Second), WithHold())
	lock := lockIt(t, client, "paused-plain", WithTTL(60*time.Second))
	c.do(t, "pause-daemon 0")
	unlocked := async(func() error { return lock.Unlock(background(t)) })
	must(t, result(t, unlocked))
	other := lockIt(t, client, "paused-other")
	must(t, held.Err()) // its deadline has not passed
	must(t, other.Unlock(background(t)))
	c.do(t, "continue-daemon 0")
	must(t, held.Err())
	must(t, held.Unlock(background(t)))
}

func daemonKilledHold(t *testing.T, c *cluster) {
	client := c.client(t, false)
	lock := lockIt(t, client, "daemon-killed-hold", WithTTL(3*time.Second), WithHold())
	ctx := lock.Context()
	c.do(t, "kill-daemon 0")
	cancelled(t, ctx)
	mustBe(t, lock.Err(), ErrLost)
	c.do(t, "start-daemon 0")
	lockIt(t, client, "daemon-killed-hold")
}

func daemonKilledAutomatic(t *testing.T, c *cluster) {
	client := c.client(t, false)
	lock := lockIt(t, client, "daemon-killed-automatic", WithTTL(10*time.Second),
		WithAutoExtend())
	c.do(t, "kill-daemon 0")
	c.do(t, "start-daemon 0")
	remaining := lock.Remaining()
	eventually(t, "an extension", func() bool {
		now := lock.Remaining()
		extended := now > remaining
		remaining = now
		return extended
	})
	must(t, lock.Context().Err())
	must(t, lock.Unlock(background(t)))
}

func secondDaemon(t *testing.T, c *cluster) {
	client := c.client(t, true)
	must(t, lockIt(t, client, "second-daemon").Unlock(background(t)))
	c.do(t, "kill-daemon 0")
	defer c.do(t, "start-daemon 0")
	must(t, lockIt(t, client, "second-daemon").Unlock(background(t)))
}

func daemonStops(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, true), "daemon-stops", WithTTL(6*time.Second), WithAutoExtend())
	c.do(t, "stop-daemon 0")
	defer c.do(t, "start-daemon 0")
	remaining := lock.Remaining()
	eventually(t, "an extension", func() bool {
		now := lock.Remaining()
		extended := now > remaining
		remaining = now
		return extended
	})
	must(t, lock.Unlock(background(t)))
	if !c.isFreeAt(t, 1, "daemon-stops") {
		t.Error("not free")
	}
}

func waiterMoves(t *testing.T, c *cluster) {
	lock := lockIt(t, newClient(t, Config{Addresses: []string{c.Daemons[1].TCP}}), "waiter-moves")
	done := async(func() error {
		_, err := c.client(t, true).Lock(background(t), "waiter-moves")
		return err
	})
	eventually(t, "a waiter", func() bool { return c.waiters(t, 0, "waiter-moves") == "1" })
	c.do(t, "kill-daemon 0")
	defer c.do(t, "start-daemon 0")
	must(t, lock.Unlock(background(t)))
	must(t, result(t, done))
}

// The child is this program, with a lock that it is to report on.
func clientSuspended(t *testing.T, c *cluster) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "REDLOCKD_TEST_CHILD="+c.Daemons[0].TCP)
	child.Stderr = os.Stderr
	// Also if the tests are killed, since a stopped process does not see the end of its input.
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	input, err := child.StdinPipe()
	must(t, err)
	pipe, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	output := bufio.NewReader(pipe)
	expectLine := func(expected string) {
		t.Helper()
		line, err := output.ReadString('\n')
		must(t, err)
		if line != expected+"\n" {
			t.Fatalf("the child says %q", line)
		}
	}
	expectLine("held")
	must(t, child.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err = syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil)
	must(t, err)
	if !status.Stopped() {
		t.Fatal("not stopped")
	}
	lockIt(t, c.client(t, false), "suspended")
	fmt.Fprintln(input)
	must(t, child.Process.Signal(syscall.SIGCONT))
	expectLine("lost 0s")
}

// suspendedChild is the child of clientSuspended.
func suspendedChild(url string) {
	client, err := New(Config{Addresses: []string{url}})
	if err != nil {
		panic(err)
	}
	lock, err := client.Lock(context.Background(), "suspended", WithTTL(1500*time.Millisecond),
		WithAutoExtend())
	if err != nil {
		panic(err)
	}
	fmt.Println("held")
	fmt.Scanln()
	if lock.Err() == nil {
		fmt.Println("held", lock.Remaining())
	} else {
		fmt.Println("lost", lock.Remaining())
	}
}

func TestMain(m *testing.M) {
	if url := os.Getenv("REDLOCKD_TEST_CHILD"); url != "" {
		suspendedChild(url)
		return
	}
	os.Exit(m.Run())
}

// --- connections ---

func tcpAddress(t *testing.T, c *cluster) {
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].TCP}})
	must(t, lockIt(t, client, "tcp").Unlock(background(t)))
}

func unixAddress(t *testing.T, c *cluster) {
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].Unix}})
	must(t, lockIt(t, client, "unix").Unlock(background(t)))
}

func tlsAddress(t *testing.T, c *cluster) {
	client := newClient(t, Config{
		Addresses: []string{c.Daemons[0].TLS}, TLS: c.tlsConfig(t),
	})
	must(t, lockIt(t, client, "tls").Unlock(background(t)))
	client = newClient(t, Config{
		Addresses: []string{c.Daemons[0].TLS}, TLS: &tls.Config{RootCAs: x509.NewCertPool()},
		Timeout: 2 * time.Second,
	})
	_, err := client.Lock(background(t), "tls")
	mustBe(t, err, ErrUnavailable)
	if !strings.Contains(err.Error(), "certificate") ||
		!strings.HasSuffix(err.Error(), "; set TLS.RootCAs") {
		t.Error(err)
	}
}

func tlsHoldEndsCleanly(t *testing.T, c *cluster) {
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].TLS}, TLS: c.tlsConfig(t)})
	lockIt(t, client, "tls-hold", WithHold())
	must(t, client.Close())
	if !c.isFree(t, "tls-hold") {
		t.Error("not free")
	}
}

func rightSecret(t *testing.T, c *cluster) {
	url := []string{c.Daemons[0].TCP}
	for i, config := range []Config{
		{Addresses: url, Secret: c.Secret}, {Addresses: url, SecretFile: c.File},
	} {
		lock := lockIt(t, newClient(t, config), fmt.Sprintf("secret-%d", i))
		must(t, lock.Unlock(background(t)))
	}
}

func wrongSecret(t *testing.T, c *cluster) {
	const secret = "wrong-wrong-wrong-wrong"
	url := []string{c.Daemons[0].TCP}
	for _, config := range []Config{
		{Addresses: url, Secret: secret}, {Addresses: url},
		{Addresses: url, SecretFile: "/nonexistent"},
	} {
		config.Timeout = time.Hour // so endless attempts would fail by the context
		_, err := newClient(t, config).Lock(background(t), "secret")
		mustBe(t, err, ErrDenied)
		if strings.Contains(err.Error(), secret) {
			t.Error(err)
		}
		asksForSecret := strings.HasSuffix(err.Error(), "; set Secret or SecretFile")
		if asksForSecret != (config.Secret == "" && config.SecretFile == "") {
			t.Error(err)
		}
	}
}

func connectionName(t *testing.T, c *cluster) {
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].TCP}, Name: "go:name"})
	lockIt(t, client, "name")
	if !strings.Contains(strings.Join(c.ask(t, 0, "CLIENTS"), "\n"), " name=go:name ") {
		t.Error("not listed")
	}
}

func closeWhileWaiting(t *testing.T, c *cluster) {
	lock := lockIt(t, c.client(t, false), "close")
	client := newClient(t, Config{Addresses: []string{c.Daemons[0].TCP}, Name: "closing"})
	done := async(func() error {
		_, err := client.Lock(background(t), "close")
		return err
	})
	eventually(t, "a waiter", func() bool { return c.waiters(t, 0, "close") == "1" })
	must(t, client.Close())
	mustBe(t, result(t, done), ErrUnavailable)
	eventually(t, "no waiter", func() bool { return c.waiters(t, 0, "close") == "0" })
	if strings.Contains(strings.Join(c.ask(t, 0, "CLIENTS"), "\n"), "closing") {
		t.Error("still connected")
	}
	must(t, lock.Unlock(background(t)))
	_, err := client.Lock(background(t), "close")
	mustBe(t, err, ErrUnavailable)
}

func ttlTooLong(t *testing.T, c *cluster) {
	_, err := c.client(t, false).Lock(background(t), "ttl", WithTTL(time.Hour))
	mustBe(t, err, ErrInvalid)
	advice := "; for work that takes longer, let the lock be extended (WithAutoExtend)"
	if !strings.HasSuffix(err.Error(), advice) {
		t.Error(err)
	}
}

func noDaemon(t *testing.T, _ *cluster) {
	const url = "tcp://127.0.0.1:1"
	client := newClient(t, Config{Addresses: []string{url}, Timeout: 200 * time.Millisecond})
	for _, wait := range []time.Duration{0, time.Minute} {
		err := result(t, async(func() error {
			_, err := client.Lock(context.Background(), "no-daemon", WithWait(wait))
			return err
		}))
		mustBe(t, err, ErrUnavailable)
		if !strings.Contains(err.Error(), url) {
			t.Error(err)
		}
	}
}
