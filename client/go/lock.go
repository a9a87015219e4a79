package redlockd

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

const (
	defaultTTL = 30 * time.Second
	// Timers stop while the machine sleeps, so a lock looks at its deadline at least this often.
	longestTick = int64(time.Second)
	retryMax    = int64(500 * time.Millisecond)
	// An automatic EXTEND without a reply is sent again after a sixth of the TTL, but not before this.
	attemptMin = int64(100 * time.Millisecond)
)

// Option changes what Lock, TryLock and LockAll ask for.
type Option func(*options)

type options struct {
	ttl        time.Duration
	wait       time.Duration
	waitSet    bool
	slots      int
	slotsSet   bool
	fence      bool
	hold       bool
	linger     bool
	autoExtend bool
}

// WithTTL sets how long the lock lives unless it is extended. The default is 30 s. The daemon's
// max_ttl limits it.
func WithTTL(ttl time.Duration) Option { return func(o *options) { o.ttl = ttl } }

// WithWait limits the wait in the queue, at most 24 h. The default is the deadline of the context.
// With 0, the lock is acquired at once or not at all, as by TryLock.
func WithWait(wait time.Duration) Option {
	return func(o *options) { o.wait, o.waitSet = wait, true }
}

// WithFence asks for a fencing token: see [Lock.Fence].
func WithFence() Option { return func(o *options) { o.fence = true } }

// WithHold makes the daemon extend the lock as long as the connection lives (up to its max_hold).
// If the process ends, the lock is free at once (over TLS only after [Client.Close]; else after its
// TTL). If the daemon finds the lock lost, it says so, and the context of the lock is cancelled.
func WithHold() Option { return func(o *options) { o.hold = true } }

// WithLinger is WithHold for work that other processes do under the lock: if this process is
// killed, the lock still lives until its TTL is over. Unlock and Client.Close release it.
func WithLinger() Option { return func(o *options) { o.hold, o.linger = true, true } }

// WithSlots acquires one of n slots, so that up to n clients hold the name at the same time.
// [Lock.Resource] says which slot it is.
func WithSlots(n int) Option { return func(o *options) { o.slots, o.slotsSet = n, true } }

// WithAutoExtend makes the client extend the lock each time a third of its TTL has passed, through
// any of the daemons. The lock is lost when this does not succeed until a sixth of the TTL is left,
// so the work has that time to stop. It has no effect with WithHold.
func WithAutoExtend() Option { return func(o *options) { o.autoExtend = true } }

// Lock is a lock that was acquired. It is safe for concurrent use.
//
// The lock is held until its deadline, which is computed from before the request was sent, on a
// clock that keeps running while the machine sleeps. A loss is final: a lock that was once reported
// as lost is never reported as held again.
type Lock struct {
	client   *Client
	parent   context.Context
	hold     bool
	resource string
	token    string
	fence    int64
	holder   *conn // with hold: the connection that has the lock

	mu         sync.Mutex
	ttl        int64 // ns
	deadline   int64 // on the clock of now()
	delivered  bool  // to the caller of Client.Lock
	unlocked   bool
	err        error // why the lock is not held any more
	gone       bool  // another client may already hold the lock
	ctx        *lockContext
	cancel     context.CancelFunc
	timer      *time.Timer
	autoExtend bool
	extending  bool
	retryAt    int64
	failure    error // of the last automatic extension, if the lock was not extended since
}

// Lock acquires the lock of a resource. It waits in the queue of the daemon until the lock is
// granted, the context ends, or the time of WithWait is over.
//
// If the context ends while Lock waits, the lock is not acquired, and if the daemon grants it
// nevertheless, the client releases it. The error then also matches that of the context.
func (c *Client) Lock(ctx context.Context, resource string, opts ...Option) (*Lock, error) {
	o, err := c.options(resource, opts)
	if err != nil {
		return nil, err
	}
	return c.acquire(ctx, resource, o, waitUntil(ctx, o))
}

// TryLock is Lock without a wait: if another client holds the lock, it returns ErrNotAcquired.
func (c *Client) TryLock(ctx context.Context, resource string, opts ...Option) (*Lock, error) {
	return c.Lock(ctx, resource, append(opts[:len(opts):len(opts)], WithWait(0))...)
}

func (c *Client) options(resource string, opts []Option) (*options, error) {
	o := &options{ttl: defaultTTL}
	for _, set := range opts {
		set(o)
	}
	wrong := ""
	switch {
	case !isWord(resource, maxResource):
		wrong = "a resource must be 1 to 256 bytes without spaces and control characters"
	case o.ttl < time.Millisecond:
		wrong = "the TTL must be at least 1ms"
	case o.wait < 0 || o.wait > maxWait:
		wrong = "the wait must be between 0 and 24h"
	case o.slotsSet && (o.slots < 1 || o.slots > maxSlots):
		wrong = "the number of slots must be between 1 and 1000"
	}
	if wrong != "" {
		return nil, newError("lock", resource, ErrInvalid, wrong, nil)
	}
	return o, c.check("lock", resource)
}

// waitUntil returns when the wait ends, on the clock of now(); 0 for no wait.
func waitUntil(ctx context.Context, o *options) int64 {
	wait := o.wait
	if !o.waitSet {
		wait = maxWait
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			wait = time.Until(deadline)
		}
	}
	if wait <= 0 {
		return 0
	}
	return now() + int64(wait)
}

func (c *Client) acquire(ctx context.Context, resource string, o *options,
	until int64) (*Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, newError("lock", resource, ErrNotAcquired, "given up", err)
	}
	request := &request{
		verb: "LOCK", resource: resource, ttlMs: o.ttl.Milliseconds(), slots: o.slots,
		waitUntil: until, fence: o.fence, hold: o.hold, linger: o.linger,
	}
	l := &Lock{
		client: c, parent: ctx, resource: resource, ttl: request.ttlMs * 1e6,
		hold: o.hold, autoExtend: o.autoExtend && !o.hold,
	}
	repeatUntil := now() + int64(c.config.Timeout)
	if until > repeatUntil {
		repeatUntil = until
	}
	deadline, ends := ctx.Deadline()
	waitsForContext := ends && !o.waitSet && time.Until(deadline) < maxWait
	r, _, err := c.do(ctx, nil, request, l, repeatUntil)
	if err != nil {
		return nil, err
	}
	if r.word != "OK" {
		e := replyError("lock", resource, r)
		if e.Kind == ErrNotAcquired {
			e.Err = ctx.Err()
		}
		// The daemon ends the wait at about the deadline of the context: either can be first.
		if r.word == "HELD" && waitsForContext && e.Err == nil {
			e.Err = context.DeadlineExceeded
		}
		return nil, e
	}
	if err := l.deliver(ctx, request, r.grant); err != nil {
		return nil, err
	}
	return l, nil
}

// granted is called by the connection, when it reads OK to LOCK.
func (l *Lock) granted(holder *conn, g grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token, l.fence, l.deadline = g.token, g.fence, g.deadline
	if g.slot != "" {
		l.resource = g.slot
	}
	if l.hold {
		l.holder = holder
	}
}

// deliver decides whether the caller gets the lock. If its deadline has passed already, the lock is
// extended once: after a very long wait the deadline has always passed, because of clock drift.
func (l *Lock) deliver(ctx context.Context, lock *request, g grant) error {
	var err error
	if now() >= g.deadline {
		err = l.extend(ctx, l.ttl)
	}
	l.mu.Lock()
	if at := now(); err == nil && l.err == nil && at < l.deadline {
		l.delivered = true
		if l.hold || l.autoExtend {
			l.startTimer(at)
		}
		l.mu.Unlock()
		return nil
	}
	if err == nil {
		err = l.err
	}
	l.mu.Unlock()
	if l.hold {
		l.holder.forget(l.token)
	}
	l.client.discard(l.holder, lock, g)
	return newError("lock", l.resource, ErrNotAcquired, "granted too late", err)
}

// Resource returns the name of the lock. With WithSlots it is the name of the slot, like "name#2".
func (l *Lock) Resource() string { return l.resource }

// String describes the lock. It leaves out the token, so a lock may be logged.
func (l *Lock) String() string { return "lock " + strconv.Quote(l.resource) }

// Token returns the token of the lock. Whoever knows it can extend and release the lock.
func (l *Lock) Token() string { return l.token }

// Fence returns the fencing token: a number that is greater than those of all earlier grants of the
// resource. Send it along with every write, and let the store refuse numbers smaller than the
// greatest it has seen. It is 0 without WithFence.
func (l *Lock) Fence() int64 { return l.fence }

// Remaining returns the time until the deadline, up to which the lock is certainly held. It is 0 if
// the deadline has passed, the lock is unlocked, or another client may hold it. After other losses
// it is the time that is left to stop. With WithHold, each proof that the lock is still held moves
// the deadline to a third of the TTL ahead, so Remaining is at least about a fifth of the TTL.
func (l *Lock) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now()
	l.checkDeadline(at)
	if l.unlocked || l.gone || at >= l.deadline {
		return 0
	}
	return time.Duration(l.deadline - at)
}

// Err returns nil while the lock is held, an error of kind ErrLost after it was lost, and one of
// kind ErrUnlocked after Unlock. Call it, or Remaining, before each step that needs the lock.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkDeadline(now())
	return l.err
}

// Context returns a context that is cancelled when the lock is lost, at its deadline, or unlocked.
// Its Err then is the error of [Lock.Err], which also matches context.Canceled.
//
// It is derived from the context that was given to Lock. So limit the wait for the lock by
// WithWait, not by that context, unless the limit is also meant for the work.
//
// If this process is stopped or the machine sleeps, the context is cancelled only afterwards, up to
// a second later: use Remaining before each step that must not happen without the lock.
func (l *Lock) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		ctx, cancel := context.WithCancel(l.parent)
		l.ctx, l.cancel = &lockContext{ctx, l}, cancel
		if l.err != nil {
			cancel()
		} else {
			l.startTimer(now())
		}
	}
	return l.ctx
}

// lockContext gives the reason of a cancellation.
type lockContext struct {
	context.Context
	lock *Lock
}

func (c *lockContext) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	if err := c.lock.parent.Err(); err != nil {
		return err
	}
	err := *c.lock.Err().(*Error)
	err.isCancel = true
	return &err
}

// --- the end of a lock ---

// checkDeadline ends the lock if its deadline has passed. l.mu is locked.
func (l *Lock) checkDeadline(at int64) {
	if at >= l.deadline && l.delivered {
		l.finish(l.expired("its time is over"))
	}
}

// finish records why the lock is not held any more, and cancels its context. l.mu is locked.
func (l *Lock) finish(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.cancel != nil {
		l.cancel()
	}
}

func (l *Lock) lost(text string, cause error) *Error {
	return newError("lock", l.resource, ErrLost, "the lock is lost: "+text, cause)
}

// expired describes a loss because of the time. l.mu is locked.
func (l *Lock) expired(text string) *Error {
	if !l.autoExtend { // LockAll may have extended it while it waited for the others
		return l.lost(text, nil)
	}
	var failure *Error
	if errors.As(l.failure, &failure) && limits[failure.limit] != "" {
		text = limits[failure.limit]
	}
	return l.lost(text, l.failure)
}

// lose ends the lock, and returns its deadline. gone: another client may already hold the lock.
func (l *Lock) lose(text string, cause error, gone bool) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = l.gone || gone
	l.finish(l.lost(text, cause))
	return l.deadline
}

// hasEnded reports whether the lock was lost or unlocked.
func (l *Lock) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil
}

// isOver reports whether nothing relies on the HOLD any more.
func (l *Lock) isOver(at int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delivered && at >= l.deadline
}

// lostUnlockWait is for how long Unlock waits after a loss. Until then the UNLOCK is usually carried
// out, so that the program can exit, or lock the same resource again.
const lostUnlockWait = 100 * time.Millisecond

// Unlock releases the lock and cancels its context. It returns nil if the lock was held until then,
// and ErrLost if it had been lost before, so that the work may not have been protected to its end.
// After another error the lock expires at the end of its TTL. A second call does nothing.
//
// The request is sent even if the context has ended, so "defer lock.Unlock(ctx)" is safe. Unlock
// waits for the result until the context ends, at most until the deadline of the lock, and after a
// loss only for a moment. Then the request goes on in the background.
func (l *Lock) Unlock(ctx context.Context) error {
	l.mu.Lock()
	if l.unlocked {
		l.mu.Unlock()
		return nil
	}
	l.checkDeadline(now())
	lost, gone, until := l.err, l.gone && l.holder == nil, l.deadline
	l.unlocked = true
	l.finish(newError("lock", l.resource, ErrUnlocked, "the holder has unlocked it", nil))
	l.mu.Unlock()
	if gone {
		return lost
	}
	request := &request{verb: "UNLOCK", resource: l.resource, token: l.token}
	wait := time.Duration(until - now())
	if lost != nil {
		wait = lostUnlockWait
	}
	if least := now() + int64(l.client.config.Timeout); until < least {
		until = least
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := l.release(limited, request, until)
	if l.hold {
		l.holder.forget(l.token)
	}
	if lost != nil {
		return lost
	}
	return err
}

func (l *Lock) release(ctx context.Context, request *request, until int64) error {
	var r reply
	var repeated bool
	err := ctx.Err()
	if err == nil {
		r, repeated, err = l.client.unlock(ctx, l.holder, request, until)
	} else {
		err = newError("unlock", l.resource, ErrUnavailable, "no reply yet", err)
	}
	if err != nil && ctx.Err() != nil {
		// An UNLOCK that is sent twice does no harm.
		l.client.inBackground(func() {
			l.client.unlock(context.Background(), l.holder, request, until)
		})
	}
	if err != nil {
		return err
	}
	if r.word == "OK" || r.word == "GONE" && repeated {
		return nil
	}
	return replyError("unlock", l.resource, r)
}

// --- extension ---

// Extend makes the lock live at least ttl from now. It never shortens the lock. ErrLost is final.
// After any other error the earlier deadline stands, and the caller can try again.
func (l *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if ttl < time.Millisecond {
		return newError("extend", l.resource, ErrInvalid, "the TTL must be at least 1ms", nil)
	}
	if err := l.Err(); err != nil {
		return err
	}
	// An answer after the deadline is of no use.
	limited, cancel := context.WithTimeout(ctx, l.Remaining())
	defer cancel()
	err := l.extend(limited, ttl.Milliseconds()*1e6)
	if lost := l.Err(); lost != nil {
		return lost
	}
	return err
}

func (l *Lock) extend(ctx context.Context, ttl int64) error {
	request := &request{verb: "EXTEND", resource: l.resource, token: l.token, ttlMs: ttl / 1e6}
	until := now() + int64(l.client.config.Timeout)
	r, _, err := l.client.do(ctx, l.holder, request, l, until)
	if err != nil {
		return err
	}
	if r.word == "GONE" {
		err := replyError("extend", l.resource, r)
		l.lose(explainLoss("gone"), nil, true)
		return err
	}
	if r.word != "OK" {
		return replyError("extend", l.resource, r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hold { // the daemon goes on with the TTL of the HOLD
		l.ttl = ttl
	}
	l.moveDeadline(r.grant.deadline, now())
	return l.err
}

// moveDeadline sets the deadline that a reply proves, unless the loss is final already. l.mu is
// locked.
func (l *Lock) moveDeadline(deadline, at int64) {
	l.checkDeadline(at)
	if l.err == nil && deadline > l.deadline {
		l.deadline, l.failure = deadline, nil
	}
}

// extendedLate is called by the connection, when it reads the reply to an EXTEND that was given up. If
// the masters are slow, all replies come late, but still in time.
func (l *Lock) extendedLate(r reply) {
	switch r.word {
	case "GONE":
		l.lose(explainLoss("gone"), nil, true)
	case "OK":
		l.mu.Lock()
		defer l.mu.Unlock()
		l.moveDeadline(r.grant.deadline, now())
	}
}

// proven is called by the connection, when a PING is answered that was sent at that time.
func (l *Lock) proven(sent int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveDeadline(sent+l.ttl/3, now())
}

// renewAt returns when to extend the lock or to prove the HOLD. l.mu is locked.
func (l *Lock) renewAt() int64 {
	due := l.deadline
	switch {
	case l.hold:
		due -= l.ttl * 2 / 9
	case l.autoExtend && !l.extending:
		due -= l.ttl * 2 / 3
	default:
		return due
	}
	if due < l.retryAt {
		return l.retryAt
	}
	return due
}

// startTimer sets the timer for what comes first. l.mu is locked.
func (l *Lock) startTimer(at int64) {
	next := l.renewAt()
	if next > l.endAt() {
		next = l.endAt()
	}
	wait := next - at
	if wait > longestTick {
		wait = longestTick
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Duration(wait), l.tick)
	} else {
		l.timer.Reset(time.Duration(wait))
	}
}

// endAt returns when the lock counts as lost. l.mu is locked.
func (l *Lock) endAt() int64 {
	if l.autoExtend {
		return l.deadline - l.ttl/6
	}
	return l.deadline
}

// tick is called by the timer.
func (l *Lock) tick() {
	l.mu.Lock()
	at := now()
	if l.err == nil && l.autoExtend && at >= l.endAt() {
		l.finish(l.expired("not extended in time"))
	}
	l.checkDeadline(at)
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	due := at >= l.renewAt()
	if due {
		l.retryAt = at + l.ttl/30
		if l.autoExtend && !l.extending {
			l.extending = true
			go l.renew()
		}
	}
	l.startTimer(at)
	l.mu.Unlock()
	if due && l.hold {
		l.holder.ping()
	}
}

// renew makes one automatic extension.
func (l *Lock) renew() {
	l.mu.Lock()
	ttl := l.ttl
	l.mu.Unlock()
	attempt := ttl / 6
	if attempt < attemptMin {
		attempt = attemptMin
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(attempt))
	defer cancel()
	err := l.Extend(ctx, time.Duration(ttl))

	l.mu.Lock()
	defer l.mu.Unlock()
	l.extending, l.failure = false, err
	retry := l.ttl / 30
	if retry > retryMax {
		retry = retryMax
	}
	at := now()
	if err != nil {
		l.retryAt = at + retry
	}
	if l.err == nil {
		l.startTimer(at)
	}
}
