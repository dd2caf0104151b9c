package agentd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// record is the stored state of a run: its status, except for a long answer, which has its
// own file. It contains neither the prompt nor env.
type record struct {
	api.AgentTaskStatus
	Slot          int         `json:"slot"`
	Isolated      bool        `json:"isolated,omitempty"`
	Director      string      `json:"director,omitempty"`
	PromptPreview string      `json:"prompt_preview"`
	Process       *proc.Ident `json:"process,omitempty"`
	Log           logShape    `json:"log"`
	Budget        *api.Budget `json:"budget,omitempty"`
	Landing       *landing    `json:"landing,omitempty"`
	Reported      bool        `json:"reported,omitempty"` // for a pulling agent: a director has acknowledged the end
}

func (r record) lane() laneID     { return laneID{Isolated: r.Isolated, Slot: r.Slot} }
func (r record) terminal() bool   { return r.State != stateWorking }
func (r record) fenceKey() string { return r.lane().String() + "@" + r.Director }

const (
	stateWorking   = "working"
	stateCompleted = "completed"
	stateFailed    = "failed"
	stateCancelled = "cancelled"
)

// fenceMark is the highest fence seen in a lane from a director, with its task. The task
// is empty if the claim was voided before it arrived.
type fenceMark struct {
	Fence   int64  `json:"fence"`
	QueueID string `json:"queue_id"`
}

// disk is the data folder. The folder records is locked while a daemon uses it.
//
//	ledger                   recent accepts, and runs that were forgotten
//	records/<task_id>.json   one run each, from the start of its program or its end
//	runs/<task_id>/          output.log, events.jsonl, stderr.log, result.txt, patch, if not empty
//	fences.json              highest fences, as of the last time that ledger slots were freed
//	sessions/                conversations: our name → the CLI's ID
//	conversations/           content of the conversations of kind llm
//	worktrees/<name>/        workspace.json, and the worktree itself: tree; landed-<branch>.json
//	landings/                worktrees in which work that lands is rebuilt, while that takes
//	instance                 identity of a pulling agent
//	terminals/               marks of open terminals, to end them after a crash
type disk struct{ dir string }

func openDisk(dir string) (*disk, error) {
	for _, d := range []string{"", "records", "runs", "sessions", "slots", "terminals"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	return &disk{dir: dir}, nil
}

func (d *disk) ledgerPath() string          { return filepath.Join(d.dir, "ledger") }
func (d *disk) runDir(taskID string) string { return filepath.Join(d.dir, "runs", taskID) }
func (d *disk) recordPath(taskID string) string {
	return filepath.Join(d.dir, "records", taskID+".json")
}

// saveRecord returns once the record is durable.
func (d *disk) saveRecord(r record) error { return d.putRecord(r, writeDurable) }

// newRecord and replaceRecord survive a crash of the process. After a power cut the record may
// be missing or torn; then the ledger or the previous record replaces it.
func (d *disk) newRecord(r record) error     { return d.putRecord(r, createFile) }
func (d *disk) replaceRecord(r record) error { return d.putRecord(r, replaceFile) }

func (d *disk) putRecord(r record, write func(string, []byte) error) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return write(d.recordPath(r.TaskID), b)
}

// loadRecords reads all records. If known reports that the ledger has a run, its unreadable
// record is ignored; any other unreadable record is renamed to *.corrupt and returned in the
// second result. It never prevents a start.
func (d *disk) loadRecords(known func(taskID string) bool) ([]record, []string, error) {
	dir := filepath.Join(d.dir, "records")
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	var recs []record
	var bad []string
	for _, n := range names {
		path := filepath.Join(dir, n.Name())
		if strings.HasPrefix(n.Name(), tempPrefix) {
			os.Remove(path) // an interrupted write, which was never acknowledged
			continue
		}
		if !strings.HasSuffix(n.Name(), ".json") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		var r record
		if err := json.Unmarshal(b, &r); err != nil || r.TaskID+".json" != n.Name() || r.StartedAt == nil {
			if known(strings.TrimSuffix(n.Name(), ".json")) {
				continue
			}
			bad = append(bad, path+".corrupt")
			if err := os.Rename(path, path+".corrupt"); err != nil {
				return nil, nil, err
			}
			continue
		}
		recs = append(recs, r)
	}
	slices.SortFunc(recs, func(a, b record) int { return a.StartedAt.Compare(*b.StartedAt) })
	return recs, bad, nil
}

func (d *disk) loadFences() (map[string]fenceMark, error) {
	fences := map[string]fenceMark{}
	path := filepath.Join(d.dir, "fences.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fences, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &fences); err != nil {
		return nil, fmt.Errorf("%s cannot be read, and without it a stale director cannot be detected; delete it to start without it: %w", path, err)
	}
	return fences, nil
}

func encodeFences(f map[string]fenceMark) ([]byte, error) { return json.Marshal(f) }

func (d *disk) saveFences(b []byte) error {
	return writeDurable(filepath.Join(d.dir, "fences.json"), b)
}

// minFreeSpace is the free space needed to accept a task: enough to record its end.
const minFreeSpace = 1 << 20

// ready returns the reason why a run could not be recorded. The ledger alone would not
// notice, because its space is reserved.
func (d *disk) ready() error {
	if _, err := os.Stat(d.ledgerPath()); err != nil {
		return err
	}
	return checkWritable(filepath.Join(d.dir, "records"))
}

// remove deletes the files of a run.
func (d *disk) remove(taskID string) error {
	if err := os.Remove(d.recordPath(taskID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(d.runDir(taskID))
}

const tempPrefix = ".new-"

// writeDurable replaces a file atomically and durably: temporary file, sync, rename, sync of
// the folder.
func writeDurable(path string, b []byte) error {
	if err := replace(path, b, (*os.File).Sync); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// createFile creates a file. A crash may leave part of it.
func createFile(path string, b []byte) error {
	return create(path, b, func(*os.File) error { return nil })
}

func create(path string, b []byte, sync func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = sync(f)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// replaceFile replaces a file atomically, without a sync.
func replaceFile(path string, b []byte) error {
	return replace(path, b, func(*os.File) error { return nil })
}

func replace(path string, b []byte, sync func(*os.File) error) error {
	tmp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
	err := create(tmp, b, sync)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}

func syncIfThere(path string) error {
	if err := syncFile(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *Daemon) getHistory(w http.ResponseWriter, req *http.Request) error {
	page, ref := countParam(req, "page", 1, math.MaxInt32)
	if ref != nil {
		return ref
	}
	limit, ref := countParam(req, "limit", 20, historySize)
	if ref != nil {
		return ref
	}
	h, err := d.history(page, limit)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, h)
}

// historyPreview bounds the answers in a list, in bytes; GET by ID has the
// whole answer.
const historyPreview = 2 << 10

// history lists ended runs, newest first.
func (d *Daemon) history(page, limit int) (api.AgentHistory, error) {
	d.mu.Lock()
	ended := d.ended[:len(d.ended):len(d.ended)]
	d.mu.Unlock()
	h := api.AgentHistory{Entries: []api.AgentTaskStatus{}, Page: page, Limit: limit, Total: len(ended)}
	h.TotalPages = (h.Total + limit - 1) / limit
	first := len(ended) - 1 - (page-1)*limit
	for i := first; i >= 0 && i > first-limit; i-- {
		s, err := ended[i].status(historyPreview)
		if err != nil {
			return h, err
		}
		h.Entries = append(h.Entries, s)
	}
	return h, nil
}

func countParam(req *http.Request, name string, def, most int) (int, *refusal) {
	s := req.URL.Query().Get(name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, invalid("%s is %q: 1 to %d", name, preview(s), most)
	}
	return n, nil
}
