package testkit_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// failed is a test that fails because of a wait.
type failed struct{ said string }

func (*failed) Helper() {}
func (f *failed) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

func TestWaitPollsUntilMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, asked := time.Now(), 0
		testkit.Wait(t, "a second has passed", func() bool { asked++; return time.Since(begin) >= time.Second })
		if took := time.Since(begin); took > time.Second+50*time.Millisecond || asked > 60 {
			t.Errorf("it was seen after %s, asked for %d times", took, asked)
		}
	})
}

func TestWaitReportsWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if f, ok := recover().(*failed); !ok || !strings.Contains(f.said, "the moon is blue") {
				t.Errorf("%+v", f)
			}
		}()
		testkit.Wait(&failed{}, "the moon is blue", func() bool { return false })
		t.Error("it returned")
	})
}
