//go:build !linux

package main

import "time"

// sinceBoot is a clock that nobody sets: Go's own, by its monotonic reading.
func sinceBoot() time.Time { return time.Now() }
