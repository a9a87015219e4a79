package redlockd

import "sync"

// jumpMin is far above the resolution of clocks, and far below any sleep.
const jumpMin = int64(10e6)

// suspendClock counts the sleep of the machine, for systems where the monotonic clock may leave it out.
// Whenever the time of day moves ahead of that clock, it counts the difference as sleep. So a step of
// the time of day makes deadlines earlier, but never later.
type suspendClock struct {
	mu       sync.Mutex
	started  bool
	distance int64 // of the time of day from the monotonic clock
	slept    int64
}

// read returns the time on the clock for two readings, all in nanoseconds.
func (c *suspendClock) read(monotonic, wall int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		c.started, c.distance = true, wall-monotonic
	}
	jump := wall - monotonic - c.distance
	if jump > jumpMin {
		c.slept += jump
	}
	if jump > jumpMin || jump < -jumpMin {
		c.distance += jump
	}
	return monotonic + c.slept
}
