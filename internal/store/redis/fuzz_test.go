package redis

import (
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// FuzzURL: an accepted URL has a prefix that is one hash tag, and no error contains the password.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"redis://:swordfish@localhost:6379/0?prefix=a", "rediss://u:swordfish@[::1]", "redis:localhost", "redis://:swordfish@h?prefix=a%7Bb", "redis://:swordfish@h:port", "http://swordfish@h", "redis://:swordfish@h?swordfish=1", "redis://h?addr=swordfish:1&db=x", "redis://:12?swordfish@h:6379", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g := &backend{}
		if err := g.parse(s); err != nil {
			if signalbox.CodeOf(err) != signalbox.CodeStoreFailed || (strings.HasPrefix(s, "redis://:") && strings.Count(s, "swordfish") == 1 && strings.Contains(err.Error(), "swordfish")) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if strings.Count(g.prefix, "{") != 1 || strings.Count(g.prefix, "}") != 1 || !strings.HasSuffix(g.prefix, "}:") || g.address == "" {
			t.Fatalf("%q: prefix %q, address %q", s, g.prefix, g.address)
		}
	})
}

// FuzzRows: a readable row is written to the same bytes again; any other is reported as damaged.
func FuzzRows(f *testing.F) {
	a := &arena{}
	f.Add(a.task(&signalbox.Task{ID: "queue-1", State: signalbox.Pending, Queue: "work", Seq: 1}))
	f.Add(a.slot(&signalbox.Slot{Agent: "coder", Slot: 1, TaskID: "queue-1", Fence: 7}))
	f.Add(a.doc(&verbs.Doc{DocKey: verbs.DocKey{Kind: "agent", ID: "x"}, Sort: 3, Body: []byte("b")}))
	f.Add(a.texts("a", "b", "c"))
	f.Add("")
	f.Add(strings.Repeat("\xff", 30))
	f.Fuzz(func(t *testing.T, row string) {
		a := &arena{}
		if task, err := readTask(row); err == nil {
			if again, err := readTask(a.task(task)); err != nil || *again != *task {
				t.Fatalf("%q: %+v\nand again %+v, %v", row, task, again, err)
			}
		} else {
			isDamaged(t, row, err)
		}
		if s, err := readSlot(row); err == nil {
			if again, err := readSlot(a.slot(&s)); err != nil || again != s {
				t.Fatalf("%q: %+v\nand again %+v, %v", row, s, again, err)
			}
		} else {
			isDamaged(t, row, err)
		}
		if d, err := readDoc("k", row); err == nil {
			if again, err := readDoc("k", a.doc(&d)); err != nil || again.ID != d.ID || again.Sort != d.Sort || string(again.Body) != string(d.Body) {
				t.Fatalf("%q: %+v\nand again %+v, %v", row, d, again, err)
			}
		} else {
			isDamaged(t, row, err)
		}
		for _, err := range []error{second(readResult(row)), second(readRequest(row, []byte(row)))} {
			if err != nil {
				isDamaged(t, row, err)
			}
		}
		var h storeCounters
		if h.readRest(row) {
			var again storeCounters
			if !again.readRest(encodeRest(&h.Counters, h.inUse)) || again.Counters != h.Counters || again.inUse != h.inUse {
				t.Fatalf("%q: %+v, and again %+v", row, h, again)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func isDamaged(t *testing.T, row string, err error) {
	t.Helper()
	var own *signalbox.Error
	if !errors.As(err, &own) || own.Code != signalbox.CodeStoreCorrupt {
		t.Fatalf("%q: %v", row, err)
	}
}
