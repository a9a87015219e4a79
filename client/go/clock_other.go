//go:build !linux

package redlockd

import "time"

var start = time.Now()

// now returns the time on the monotonic clock in nanoseconds. Whether it counts the time during
// which the machine sleeps depends on the system.
func now() int64 {
	return int64(time.Since(start))
}
