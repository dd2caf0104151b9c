package agentd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// ledger makes a 201 durable. It is a file of fixed size in which each accept overwrites a
// slot. Its size and blocks never change, so one fdatasync is enough and does not wait for the
// file system's journal. A slot is overwritten only once its entry is no longer needed; see
// recover.go.
type ledger struct {
	file ledgerFile

	mu   sync.Mutex
	next int64 // sequence number of the next entry, from 1
	safe int64 // entries below this number may be overwritten

	syncMu    sync.Mutex
	synced    int64 // entries up to here are durable
	failedSeq int64 // the sync of entries up to this number failed
}

// ledgerFile is replaced by a failing disk in tests.
type ledgerFile interface {
	WriteAt(b []byte, at int64) (int, error)
	Sync() error
	Close() error
}

type dataFile struct{ *os.File }

func (f dataFile) Sync() error { return syncData(f.File) }

// history is what the ledger has about earlier processes.
type history struct {
	accepted  map[string]record
	seqs      map[string]int64 // sequence numbers of accepted
	forgotten map[string]bool
	newest    map[laneID]int64 // newest accept of each lane
	voided    []record         // void claims: their fences and lanes
}

// surelyEnded reports whether a run and its processes have certainly ended: a later run
// was accepted in its lane.
func (p history) surelyEnded(r record) bool {
	seq := p.seqs[r.TaskID]
	return seq > 0 && seq < p.newest[r.lane()]
}

// order returns the accepted runs, oldest first.
func (p history) order() []string {
	return slices.SortedFunc(maps.Keys(p.accepted), func(a, b string) int { return cmp.Compare(p.seqs[a], p.seqs[b]) })
}

var (
	errLedgerFull = errors.New("every entry of the ledger is still needed; the disk does not take what is to replace them")
	errLedgerLost = errors.New("the entry may not have reached the disk")
)

// openLedger creates or reads the ledger. It skips a torn slot, which was never
// acknowledged.
func openLedger(path string) (*ledger, history, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, history{}, err
	}
	if want := ledgerSlots * slotSize; len(b) != want {
		whole := make([]byte, want) // written, not only allocated, so that the state of the blocks never changes
		copy(whole, b)
		b = whole
		if err := writeDurable(path, b); err != nil {
			return nil, history{}, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, history{}, err
	}
	l := &ledger{file: dataFile{f}, next: 1, safe: 1}
	return l, l.load(b), nil
}

func (l *ledger) load(b []byte) history {
	p := history{accepted: map[string]record{}, seqs: map[string]int64{}, forgotten: map[string]bool{}, newest: map[laneID]int64{}}
	first := int64(0)
	for i := range int64(ledgerSlots) {
		seq, e, ok := decodeSlot(b[i*slotSize : (i+1)*slotSize])
		if !ok || seq%ledgerSlots != i {
			continue
		}
		if first == 0 || seq < first {
			first = seq
		}
		l.next = max(l.next, seq+1)
		if r := e.Accepted; r != nil && r.StartedAt != nil {
			p.accepted[r.TaskID], p.seqs[r.TaskID] = *r, seq
			p.newest[r.lane()] = max(p.newest[r.lane()], seq)
		}
		if e.Void != nil {
			p.voided = append(p.voided, *e.Void)
		}
		for _, id := range e.Forgotten {
			p.forgotten[id] = true
		}
	}
	l.safe, l.synced = max(first, 1), l.next-1
	return p
}

// append returns once the entry is durable. After an error the entry counts as not
// written.
func (l *ledger) append(e entry) (int64, error) {
	seq, err := l.write(e)
	if err != nil {
		return 0, err
	}
	if err := l.sync(seq); err != nil {
		l.void(seq)
		return 0, err
	}
	return seq, nil
}

func (l *ledger) write(e entry) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq := l.next
	if seq-ledgerSlots >= l.safe {
		return 0, errLedgerFull
	}
	b, err := encodeSlot(seq, e)
	if err == nil {
		_, err = l.file.WriteAt(b, seq%ledgerSlots*slotSize)
	}
	if err != nil {
		return 0, err
	}
	l.next++
	return seq, nil
}

// sync makes all earlier entries durable with one call.
func (l *ledger) sync(seq int64) error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if seq <= l.failedSeq { // the system reports a failed write only once
		return errLedgerLost
	}
	if seq <= l.synced {
		return nil
	}
	l.mu.Lock()
	upTo := l.next - 1
	l.mu.Unlock()
	if err := l.file.Sync(); err != nil {
		l.failedSeq = upTo
		return fmt.Errorf("%w: %w", errLedgerLost, err)
	}
	l.synced = upTo
	return nil
}

// void overwrites an entry whose sync failed, if possible. Otherwise the next start shows a
// refused run as interrupted, which is harmless.
func (l *ledger) void(seq int64) {
	if b, err := encodeSlot(seq, entry{}); err == nil {
		_, _ = l.file.WriteAt(b, seq%ledgerSlots*slotSize)
	}
}

// Slots are freed when a quarter of them is left, and half of the entries is
// kept: older runs are rarely still needed.
const (
	ledgerDue  = ledgerSlots * 3 / 4
	ledgerKeep = ledgerSlots / 2
)

// compactBelow returns the sequence number below which entries should be made unnecessary now;
// 0: there is enough room.
func (l *ledger) compactBelow() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next-l.safe < ledgerDue {
		return 0
	}
	return l.next - ledgerKeep
}

// release allows entries below seq to be overwritten.
func (l *ledger) release(seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.safe = max(l.safe, seq)
}

// dirLock is an exclusive lock on the folder itself: it leaves no file, every daemon sees it,
// and it ends with its holder.
type dirLock struct{ f *os.File }

func (l *dirLock) release() { l.f.Close() }

// tryLockDir returns false if another process holds the lock.
func tryLockDir(dir string) (*dirLock, bool, error) {
	f, err := filelock.OpenFolder(dir)
	if err != nil {
		return nil, false, err
	}
	err = filelock.Take(f)
	if err == nil {
		if err = isOf(f, dir); err == nil {
			return &dirLock{f}, true, nil
		}
	}
	f.Close()
	if errors.Is(err, filelock.ErrHeld) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("lock %s: %w", dir, err)
}

// isOf returns an error if the folder of f has been removed since it was opened for locking,
// even if a new folder has taken its place.
func isOf(f *os.File, dir string) error {
	there, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" { // on Windows f is a file that stands for the folder
		return err
	}
	if own, err := f.Stat(); err != nil || !os.SameFile(own, there) {
		return cmp.Or(err, fs.ErrNotExist)
	}
	return nil
}

// lockDirs locks all folders until ctx ends, in a fixed order that avoids deadlocks. waiting
// is called once for each folder in use.
func lockDirs(ctx context.Context, dirs []string, waiting func(dir string)) ([]*dirLock, error) {
	slices.Sort(dirs)
	var held []*dirLock
	for _, dir := range slices.Compact(dirs) {
		l, err := lockDir(ctx, dir, waiting)
		if err != nil {
			releaseAll(held)
			return nil, err
		}
		held = append(held, l)
	}
	return held, nil
}

func lockDir(ctx context.Context, dir string, waiting func(dir string)) (*dirLock, error) {
	said := false
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		l, ok, err := tryLockDir(dir)
		if err != nil || ok {
			return l, err
		}
		if !said {
			said = true
			waiting(dir)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("the folder %s is in use by another run: %w", dir, context.Cause(ctx))
		case <-t.C:
		}
	}
}

func releaseAll(locks []*dirLock) {
	for _, l := range slices.Backward(locks) {
		l.release()
	}
}

func (d *Daemon) postVoid(w http.ResponseWriter, req *http.Request) error {
	var v api.AgentVoid
	if err := d.decode(w, req, &v, false); err != nil {
		return err
	}
	done, err := d.Void(req.PathValue("id"), v)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, done)
}

// Void promises that a claim that never arrived will be refused, as POST /task/{queue_id}/void
// does. It returns once the promise is durable. If the claim has arrived, Void fails: ask for
// its state.
func (d *Daemon) Void(queueID string, v api.AgentVoid) (api.AgentVoided, error) {
	ref := d.checkVoid(queueID, &v)
	mark := record{Slot: v.Slot, Isolated: v.Isolated, Director: v.Director}
	mark.Fence = v.Fence
	if ref == nil {
		ref = d.raiseVoid(queueID, &mark)
	}
	if ref != nil {
		return api.AgentVoided{}, ref
	}
	if err := d.store(func() error { _, err := d.ledger.append(entry{Void: &mark}); return err }); err != nil {
		return api.AgentVoided{}, refuse(http.StatusInternalServerError, "storage_error", "that the claim is void could not be stored: %v", err)
	}
	return api.AgentVoided{QueueID: queueID, Fence: v.Fence, Status: api.StatusVoid}, nil
}

func (d *Daemon) checkVoid(queueID string, v *api.AgentVoid) *refusal {
	switch {
	case !validQueueID(queueID):
		return invalid("the task is named by its queue_id: 1 to 200 letters, digits, '.', '_', ':' or '-'")
	case v.Fence < 1:
		return invalid("fence is required, from 1")
	case len(v.Director) > 200:
		return invalid("director may have 200 bytes at most")
	}
	return d.checkLane(laneID{v.Isolated, v.Slot})
}

// raiseVoid marks the fence as seen, under the lock for offers. A mark without a task
// refuses every task with that fence.
func (d *Daemon) raiseVoid(queueID string, mark *record) *refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byQueue[queueID]; r != nil {
		if rec := r.record(); rec.Fence == mark.Fence && rec.Director == mark.Director {
			return refuseActive(r)
		}
	}
	d.raiseFence(mark)
	return nil
}

// refuseActive refuses a request that needs a task that never began or has
// ended.
func refuseActive(r *run) *refusal {
	if rec := r.record(); rec.terminal() {
		return alreadyEnded(rec)
	}
	ref := busy(r)
	ref.body.Error = "task_in_progress"
	return ref
}
