package agentd

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// FuzzSlot: only a slot that was written completely is read as an entry; a
// single changed bit makes it an unwritten slot.
func FuzzSlot(f *testing.F) {
	whole, err := encodeSlot(7, entry{Forgotten: []string{"task-1"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, 3)
	f.Add(whole[:100], 0)
	f.Add(make([]byte, slotSize), 5)
	f.Fuzz(func(t *testing.T, b []byte, bit int) {
		seq, e, ok := decodeSlot(b)
		if !ok {
			return
		}
		if len(b) != slotSize || seq < 1 {
			t.Fatalf("%d bytes, number %d", len(b), seq)
		}
		if _, err := encodeSlot(seq, e); err != nil {
			t.Fatal(err)
		}
		torn := bytes.Clone(b)
		torn[uint(bit)%slotSize] ^= 1
		if _, _, ok := decodeSlot(torn); ok && uint(bit)%slotSize >= 4 {
			t.Fatalf("a change of byte %d is not detected", uint(bit)%slotSize)
		}
	})
}

// FuzzLedger: whatever is in the file, the next sequence number is above all
// that were written.
func FuzzLedger(f *testing.F) {
	for _, seq := range []int64{1, 255, 256, 1 << 40} {
		b, err := encodeSlot(seq, entry{Accepted: &record{}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(seq%ledgerSlots))
	}
	f.Add([]byte("x"), uint8(0))
	f.Fuzz(func(t *testing.T, slot []byte, at uint8) {
		file := make([]byte, ledgerSlots*slotSize)
		copy(file[int(at)*slotSize:], slot[:min(len(slot), slotSize)])
		l := &ledger{}
		p := l.load(file)
		if len(p.accepted) > ledgerSlots || (l.next > 0 && l.next <= l.synced) {
			t.Fatalf("%d accepted, next %d, synced %d", len(p.accepted), l.next, l.synced)
		}
	})
}

// FuzzTask: the body of POST /task is either refused with a message or is a task
// whose values are safe in an argument list and a path.
func FuzzTask(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"x"}`, `{"prompt":"x","session_id":"../a"}`, `{"prompt":"x","env":{"A=B":"c"}}`, `{"prompt":"x","model":"--help"}`, `{"prompt":"x","fence":1}`, `{"prompt":1}`, `[]`, ``, `{"prompt":"x"}{}`, `{"unknown":1}`,
		`{"prompt":"\u0000"}`, `{"prompt":"x","timeout_seconds":-1}`, `{"prompt":"x","queue_id":"a b"}`,
	} {
		f.Add(s)
	}
	d := &Daemon{cfg: Config{BodyLimit: 1 << 20}}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/task", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		var task api.AgentTask
		if ref := d.decode(httptest.NewRecorder(), r, &task, false); ref != nil {
			if !json.Valid([]byte(body)) || ref.status/100 == 4 {
				return
			}
			t.Fatalf("%q is refused with %d", body, ref.status)
		}
		if !json.Valid([]byte(body)) {
			t.Fatalf("%q was taken", body)
		}
		if ref := checkEnv(task.Env); ref == nil {
			for name := range task.Env {
				if name == "" || strings.ContainsAny(name, "=\x00") {
					t.Fatalf("%q is a variable", name)
				}
			}
		}
		if task.Model != "" && validModel(task.Model) && (strings.HasPrefix(task.Model, "-") || strings.ContainsAny(task.Model, " \n\x00")) {
			t.Fatalf("%q is a model", task.Model)
		}
		if validSession(task.SessionID) && (strings.Contains(task.SessionID, "..") || strings.ContainsAny(task.SessionID, "/\\\x00\n") || strings.HasPrefix(task.SessionID, "-")) {
			t.Fatalf("%q is a session", task.SessionID)
		}
	})
}
