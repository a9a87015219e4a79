package redlockd

import (
	"context"
	"errors"
	"time"
)

// Locks are the locks that LockAll has acquired, in the byte order of their names.
type Locks []*Lock

// LockAll acquires the locks of all resources, or none. It acquires them in the byte order of their
// names, as all clients should, so that clients do not wait for each other in a circle. The time of
// WithWait is for all of them together. Until the last lock is granted, the client extends the
// others. A resource that is named twice is locked once.
func (c *Client) LockAll(ctx context.Context, resources []string, opts ...Option) (Locks, error) {
	names := inByteOrder(resources)
	if len(names) == 0 {
		return nil, newError("lock", "", ErrInvalid, "there must be at least one resource", nil)
	}
	var o *options
	var err error
	for _, name := range names {
		if o, err = c.options(name, opts); err != nil {
			return nil, err
		}
	}
	until := waitUntil(ctx, o)
	autoExtend := o.autoExtend
	var locks Locks
	for i, name := range names {
		o.autoExtend = autoExtend || i < len(names)-1
		// Each context is derived from the one before, so that a loss ends the waits and the work.
		inner := ctx
		if len(locks) > 0 {
			inner = locks.Context()
		}
		lock, err := c.acquire(inner, name, o, until)
		if err != nil {
			locks.Unlock(ctx)
			return nil, err
		}
		if len(locks) == 0 {
			// Close ends the wait for the others, and waits until this one is released.
			c.beginRelease()
			defer c.endRelease()
		}
		locks = append(locks, lock)
	}
	for _, lock := range locks {
		lock.mu.Lock()
		lock.autoExtend = lock.autoExtend && autoExtend
		lock.mu.Unlock()
	}
	if err := locks.Err(); err != nil {
		locks.Unlock(ctx)
		return nil, newError("lock", names[0], ErrNotAcquired, "lost again while waiting", err)
	}
	return locks, nil
}

// Context returns a context that is cancelled when any of the locks is lost or unlocked.
func (all Locks) Context() context.Context { return all[len(all)-1].Context() }

// Err returns the error of the first lock that is not held any more.
func (all Locks) Err() error {
	for _, lock := range all {
		if err := lock.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Remaining returns the time until the earliest deadline.
func (all Locks) Remaining() time.Duration {
	least := all[0].Remaining()
	for _, lock := range all[1:] {
		if remaining := lock.Remaining(); remaining < least {
			least = remaining
		}
	}
	return least
}

// Extend extends all locks. It returns ErrLost if any of them is lost, or else the first error. After
// an error some may have been extended.
func (all Locks) Extend(ctx context.Context, ttl time.Duration) error {
	return all.each(func(lock *Lock) error { return lock.Extend(ctx, ttl) })
}

// Unlock releases all locks. It returns ErrLost if any of them had been lost, or else the first
// error. After a loss it waits only for a moment.
func (all Locks) Unlock(ctx context.Context) error {
	if errors.Is(all.Err(), ErrLost) {
		limited, cancel := context.WithTimeout(ctx, lostUnlockWait)
		defer cancel()
		ctx = limited
	}
	return all.each(func(lock *Lock) error { return lock.Unlock(ctx) })
}

// each calls f for all locks at the same time. It returns a loss, or else the first error in their
// order.
func (all Locks) each(f func(*Lock) error) error {
	errs := make([]chan error, len(all))
	for i, lock := range all {
		errs[i] = make(chan error, 1)
		go func(lock *Lock, err chan error) { err <- f(lock) }(lock, errs[i])
	}
	var first error
	for _, err := range errs {
		e := <-err
		if first == nil || errors.Is(e, ErrLost) && !errors.Is(first, ErrLost) {
			first = e
		}
	}
	return first
}
