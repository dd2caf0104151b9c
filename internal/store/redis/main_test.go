package redis_test

import (
	"testing"

	"go.uber.org/goleak"
)

// If a server cannot be reached, a goroutine of the client sleeps for up to a second before it ends, even if
// the client is closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
