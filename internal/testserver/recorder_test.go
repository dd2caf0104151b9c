//go:build unix

package testserver_test

import (
	"fmt"
	"testing"
)

// recorder is a test that is expected to fail.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.said = fmt.Sprintf(format, args...)
	panic(r)
}

// catch runs f until its Fatalf.
func (r *recorder) catch(f func()) {
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
	}()
	f()
}
