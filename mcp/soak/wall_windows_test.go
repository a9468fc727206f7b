package soak

import (
	"syscall"
	"time"
)

// wall is the time that no bubble changes.
func wall() time.Time {
	var tv syscall.Timeval
	_ = syscall.Gettimeofday(&tv)
	return time.Unix(0, tv.Nanoseconds())
}
