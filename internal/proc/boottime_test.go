package proc

import (
	"testing"
	"time"
)

func TestSinceBootAdvancesLikeTime(t *testing.T) {
	own, begun := SinceBoot(), time.Now()
	for time.Since(begun) < 20*time.Millisecond {
		time.Sleep(5 * time.Millisecond)
	}
	if passed := SinceBoot().Sub(own); passed < 20*time.Millisecond || passed > time.Hour {
		t.Errorf("%s passed on the clock of leases, and %s on Go's", passed, time.Since(begun))
	}
	if off := time.Until(SinceBoot()).Abs(); off > time.Hour {
		t.Errorf("it is off by %s", off)
	}
}
