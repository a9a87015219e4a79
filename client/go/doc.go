// Package redlockd is the Go client of redlockd, a lock manager that runs Redlock on Redis masters.
//
//	client, err := redlockd.New(redlockd.Config{Addresses: []string{"tcp://127.0.0.1:7335"}})
//	...
//	lock, err := client.Lock(ctx, "deploy", redlockd.WithTTL(30*time.Second))
//	if err != nil {
//		return err
//	}
//	defer lock.Unlock(ctx)
//	return deploy(lock.Context())
//
// A lock is held until its deadline. [Lock.Remaining] says what is left, [Lock.Err] whether the
// lock is still held, and [Lock.Context] is cancelled when it is not. WithAutoExtend and WithHold
// keep the lock for longer than its TTL.
//
// No lock can stop a write that reaches a store after the deadline. If that matters, use WithFence
// and let the store refuse old fencing tokens.
package redlockd
