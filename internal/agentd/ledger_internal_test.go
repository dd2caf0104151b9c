package agentd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

func accepted(id string) entry {
	now := time.Now().UTC()
	var r record
	r.TaskID, r.State, r.StartedAt = id, stateWorking, &now
	return entry{Accepted: &r}
}

func mustAppend(t *testing.T, l *ledger, e entry) int64 {
	t.Helper()
	seq, err := l.append(e)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func reopen(t *testing.T, path string) (*ledger, history) {
	t.Helper()
	l, p, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.file.Close() })
	return l, p
}

// An entry with the longest allowed fields fits a slot, however JSON encodes
// them.
func TestLongestEntryFitsASlot(t *testing.T) {
	e := accepted("task-" + strings.Repeat("f", 16))
	r := e.Accepted
	r.QueueID, r.Director = strings.Repeat("q", 200), strings.Repeat("<", 200)
	r.SessionID, r.PromptPreview = strings.Repeat("s", 128), strings.Repeat("\x01", 100)+"…"
	r.Fence, r.Slot, r.Isolated = 1<<62, 63, true
	b, err := encodeSlot(1<<40, e)
	if err != nil {
		t.Fatal(err)
	}
	seq, got, ok := decodeSlot(b)
	if !ok || seq != 1<<40 || got.Accepted.Director != r.Director || got.Accepted.PromptPreview != r.PromptPreview {
		t.Errorf("%v %d %+v", ok, seq, got.Accepted)
	}
	ids := make([]string, 5*forgetBatch)
	for i := range ids {
		ids[i] = r.TaskID
	}
	if _, err := encodeSlot(1, entry{Forgotten: ids}); err != nil {
		t.Error(err)
	}
}

// A torn slot is read as empty, and its neighbours are intact.
func TestTornSlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, _ := reopen(t, path)
	for _, id := range []string{"a", "b", "c"} {
		mustAppend(t, l, accepted(id))
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 3, 7, 20, 100, 150} {
		b := append([]byte(nil), whole...)
		clear(b[3*slotSize+cut : 4*slotSize]) // only the beginning of the newest slot was written
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, p := reopen(t, path)
		_, torn := p.accepted["c"]
		if len(p.accepted) != 2 || torn || l.next != 3 {
			t.Errorf("cut at %d: %d entries, next %d", cut, len(p.accepted), l.next)
		}
	}
}

// A ledger file that is too short is extended, and keeps its entries.
func TestShortLedgerFileIsExtended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, _ := reopen(t, path)
	mustAppend(t, l, accepted("a"))
	if err := os.Truncate(path, 2*slotSize); err != nil {
		t.Fatal(err)
	}
	l, p := reopen(t, path)
	if len(p.accepted) != 1 || l.next != 2 {
		t.Errorf("%d entries, next %d", len(p.accepted), l.next)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != ledgerSlots*slotSize {
		t.Errorf("%v %v", st.Size(), err)
	}
}

// No entry is overwritten before it is released, even after a restart.
func TestLedgerDoesNotOverwriteNeededEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, _ := reopen(t, path)
	l.file = &brokenFile{ledgerFile: l.file} // syncs do not matter for this test
	for i := range int64(ledgerSlots) {
		if seq := mustAppend(t, l, accepted("a")); seq != i+1 {
			t.Fatalf("entry %d is number %d", i, seq)
		}
	}
	for range 2 {
		if _, err := l.append(accepted("b")); !errors.Is(err, errLedgerFull) {
			t.Fatalf("a needed entry was overwritten: %v", err)
		}
		l, _ = reopen(t, path)
	}
	l.release(l.compactBelow())
	if seq := mustAppend(t, l, accepted("b")); seq != ledgerSlots+1 {
		t.Errorf("number %d", seq)
	}
	l, p := reopen(t, path)
	if len(p.accepted) != 2 || p.seqs["b"] != ledgerSlots+1 || l.next != ledgerSlots+2 || l.safe != 2 {
		t.Errorf("%v, next %d, safe %d", p.seqs, l.next, l.safe)
	}
}

// brokenFile fails as told, and does not sync.
type brokenFile struct {
	ledgerFile
	mu          sync.Mutex
	write, sync error
}

func (f *brokenFile) set(write, sync error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write, f.sync = write, sync
}

func (f *brokenFile) WriteAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.write != nil {
		return 0, f.write
	}
	return f.ledgerFile.WriteAt(b, at)
}

func (f *brokenFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sync
}

// A claim that the disk does not store is refused, leaves no trace, and may
// be retried with the same fence. A failed sync fails all claims that waited
// for it.
func TestDiskFailureDuringAccept(t *testing.T) {
	disk := errors.New("input/output error")
	for name, fail := range map[string][2]error{"write": {disk, nil}, "sync": {nil, disk}} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			cfg := Config{Kind: "demo", DataDir: root + "/data", WorkDir: root, Home: root, ExecLog: root + "/exec"}
			d, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			f := &brokenFile{ledgerFile: d.ledger.file}
			d.ledger.file = f
			f.set(fail[0], fail[1])
			task := api.AgentTask{Prompt: "sleep 0s", QueueID: "queue-a", Fence: 3}
			_, err = d.Accept(t.Context(), task)
			var ref *refusal
			if !errors.As(err, &ref) || ref.status != 500 || ref.body.Error != "storage_error" {
				t.Fatalf("got %v", err)
			}
			if d.find("queue-a") != nil || d.Status().State != "idle" {
				t.Error("it is known nevertheless")
			}
			if _, err := d.Void("queue-b", api.AgentVoid{Fence: 2}); !errors.As(err, &ref) || ref.status != 500 || ref.body.Error != "storage_error" {
				t.Errorf("a promise that is not stored: %v", err)
			}
			f.set(nil, nil)
			acc, err := d.Accept(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			<-d.find("queue-a").done
			d.Close()
			d, err = New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if r := d.find("queue-a"); r == nil || r.record().TaskID != acc.TaskID || len(d.ended) != 1 {
				t.Errorf("%d runs, %+v", len(d.ended), r)
			}
		})
	}
}

func TestOneSyncForManyAccepts(t *testing.T) {
	l, _ := reopen(t, filepath.Join(t.TempDir(), "ledger"))
	f := &countingFile{ledgerFile: l.file, began: make(chan struct{}), goOn: make(chan struct{})}
	l.file = f
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := l.append(accepted("a")); err != nil {
			t.Error(err)
		}
	})
	<-f.began // the disk is at the first; the others are written meanwhile
	var seqs []int64
	for range 20 {
		seq, err := l.write(accepted("b"))
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, seq)
	}
	for _, seq := range seqs {
		wg.Go(func() {
			if err := l.sync(seq); err != nil {
				t.Error(err)
			}
		})
	}
	close(f.goOn)
	wg.Wait()
	if f.n != 2 {
		t.Errorf("%d syncs for 21 accepts, want 2", f.n)
	}
}

type countingFile struct {
	ledgerFile
	began, goOn chan struct{}
	n           int
}

func (f *countingFile) Sync() error { // never called concurrently: the ledger ensures that
	if f.n++; f.n == 1 {
		close(f.began)
		<-f.goOn
	}
	return nil
}
