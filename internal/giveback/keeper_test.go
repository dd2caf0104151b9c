package giveback

import (
	"slices"
	"testing"
)

// It becomes idle once, after several quiet checks in a row, and busy again at the
// second busy check in a row: a single one, for example because a page was opened,
// changes nothing.
func TestAProcessRestsAfterAWhileAndWorksAtTheSecondBusyLook(t *testing.T) {
	var p pace
	var got []turn
	total := uint64(0)
	for _, bytes := range []uint64{busyBytes, 0, 0, 0, 0, busyBytes, 1, 1, 1, 1, 1, 1, busyBytes - 1, busyBytes, 0, busyBytes, busyBytes, busyBytes, 0} {
		total += bytes
		got = append(got, p.next(total))
	}
	want := []turn{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, rests, 0, 0, 0, 0, 0, works, 0, 0}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAllocationsAreCounted(t *testing.T) {
	before := allocated()
	kept = make([]byte, 8<<20)
	if grown := allocated() - before; grown < 8<<20 {
		t.Errorf("%d bytes, want the 8 MiB that were allocated", grown)
	}
}

var kept []byte

func TestKeeperStops(t *testing.T) {
	Start().Stop()
}
