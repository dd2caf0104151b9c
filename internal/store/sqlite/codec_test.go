package sqlite

import (
	"reflect"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Whatever stands in a damaged row, reading it must end in an error and not in
// a panic; and what can be read must be written as it was.
func FuzzReadEntries(f *testing.F) {
	var p packer
	var row []byte
	for range 3 {
		row = p.entry(row, &signalbox.Entry{At: time.UnixMilli(1), Kind: signalbox.EventClaim, QueueID: "queue-1", Fence: -1, Message: "m"})
	}
	f.Add(row)
	f.Add(row[:len(row)-1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 2})
	f.Fuzz(func(t *testing.T, row []byte) {
		entries, err := readEntries(row, 7)
		if err != nil {
			return
		}
		var again []byte
		for i := range entries {
			again = p.entry(again, &entries[i])
		}
		same, err := readEntries(again, 7)
		if err != nil || !reflect.DeepEqual(same, entries) {
			t.Fatalf("got %v (%v), want %v", same, err, entries)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	yes, code := true, -3
	f.Add(packRequest(&signalbox.Request{Model: "m", Project: &signalbox.Project{Name: "p"}, Thinking: &yes, HadEnv: true}))
	f.Add(packResult(&signalbox.Result{ExitCode: &code, CostUSD: 0.25, ErrorType: "e", Truncated: true}))
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, rest []byte) {
		if r, err := unpackRequest("prompt", rest, nil); err == nil {
			again, err := unpackRequest("prompt", packRequest(&r), nil)
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("request: got %+v (%v), want %+v", again, err, r)
			}
		}
		if r, err := unpackResult("output", "tail", rest); err == nil && r.CostUSD == r.CostUSD && r.DurationSeconds == r.DurationSeconds {
			again, err := unpackResult("output", "tail", packResult(&r))
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("result: got %+v (%v), want %+v", again, err, r)
			}
		}
	})
}
