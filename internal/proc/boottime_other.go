//go:build !linux

package proc

import "time"

// SinceBoot is a clock that is never set: Go's own monotonic clock.
func SinceBoot() time.Time { return time.Now() }
