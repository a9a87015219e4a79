package redlockd

import (
	"syscall"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME, which package syscall does not name

// now returns the time on a clock in nanoseconds. The clock keeps running while the machine sleeps,
// as the TTLs on the masters do. The monotonic clock of package time stops.
func now() int64 {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime,
		uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		panic("redlockd: CLOCK_BOOTTIME: " + errno.Error())
	}
	return t.Nano()
}
