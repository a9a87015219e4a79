//go:build !linux

package redlockd

import "time"

var (
	start = time.Now()
	clock suspendClock
)

// now returns the time on a clock in nanoseconds. The monotonic clock of package time may stop while
// the machine sleeps, so the time of day says whether it has slept.
func now() int64 {
	t := time.Now()
	return clock.read(int64(t.Sub(start)), t.UnixNano())
}
