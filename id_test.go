package signalbox_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
)

func mustID(t interface{ Fatal(...any) }, at time.Time, random []byte) string {
	id, err := signalbox.NewID(at, bytes.NewReader(random))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestIDForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "ms"))
		id := mustID(t, at, rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random"))
		if !signalbox.ValidID(id) || !strings.HasPrefix(id, signalbox.IDPrefix) || len(id) != 32 {
			t.Fatalf("%q is no id", id)
		}
	})
}

func TestIDsSortByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := rapid.SliceOfN(rapid.Byte(), 10, 10)
		ms := rapid.Int64Range(0, 1<<48-2).Draw(t, "ms")
		later := rapid.Int64Range(ms+1, 1<<48-1).Draw(t, "later")
		first := mustID(t, time.UnixMilli(ms), bytesOf.Draw(t, "random"))
		second := mustID(t, time.UnixMilli(later), bytesOf.Draw(t, "more random"))
		if first >= second {
			t.Fatalf("%s of %d does not stand before %s of %d", first, ms, second, later)
		}
	})
}

// All 80 random bits are in the id: a change of any bit changes the id.
func TestIDKeepsAllRandomBits(t *testing.T) {
	zero := mustID(t, noon, make([]byte, 10))
	for bit := range 80 {
		random := make([]byte, 10)
		random[bit/8] = 1 << (bit % 8)
		if id := mustID(t, noon, random); id == zero {
			t.Errorf("random bit %d is not in the id", bit)
		}
	}
}

func TestIDsOfOneMomentDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id, err := signalbox.NewID(noon, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if seen[id] {
			t.Fatalf("%s twice", id)
		}
		seen[id] = true
	}
}

func TestIDNeedsRandomBytes(t *testing.T) {
	cause := errors.New("no entropy")
	if _, err := signalbox.NewID(noon, iotest.ErrReader(cause)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if _, err := signalbox.NewID(noon, strings.NewReader("short")); err == nil {
		t.Error("an id of too few random bytes")
	}
}

func TestValidID(t *testing.T) {
	good := mustID(t, noon, make([]byte, 10))
	for _, bad := range []string{
		"", "queue-", good[:31], good + "0", strings.ToUpper(good), strings.TrimPrefix(good, "queue-"),
		good[:31] + "i", good[:31] + "l", good[:31] + "o", good[:31] + "u", good[:31] + "/", good + "\n", "\n" + good, "../" + good,
	} {
		if signalbox.ValidID(bad) {
			t.Errorf("%q passes for an id", bad)
		}
	}
}
