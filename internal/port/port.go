package port

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Source is where tasks are read from.
type Source struct {
	// What describes the source for people: "an export", "the folder of a work
	// queue", …
	What string
	// Read passes its content to a Taker, tasks in the order in which they wait.
	Read func(ctx context.Context, to Taker) error
}

// Taker receives what is read from a Source.
type Taker struct {
	Task  func(api.ExportedTask) error
	Usage func([]api.ExportedUsage) error // only for an export
	Bad   func(where, why string)         // for an unreadable record, which is skipped
}

// Open recognizes a source: "-" and a file are an export or a .tasksQueue, a
// folder is a work queue's, a redis:// URL an execution queue.
func Open(source string) (Source, error) {
	if strings.HasPrefix(source, "redis://") || strings.HasPrefix(source, "rediss://") {
		return executionQueue(source), nil
	}
	if source == "-" {
		return lines(source), nil
	}
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Source{}, fmt.Errorf("there is no %s: want a file of signalbox export, a .tasksQueue, the folder of a work queue, or redis://…", source)
	case err != nil:
		return Source{}, err
	case info.IsDir():
		return workQueue(source)
	case !info.Mode().IsRegular():
		return Source{}, fmt.Errorf("%s is not a regular file: give its content on standard input, with - in its place", source)
	case filepath.Base(source) == ".tasksQueue":
		return tasksQueue(source), nil
	}
	array, err := startsWith(source, '[')
	if err != nil {
		return Source{}, err
	}
	if array {
		return tasksQueue(source), nil
	}
	return lines(source), nil
}

// startsWith reports whether the first byte of a file other than space is c.
func startsWith(path string, c byte) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := f.Read(head) // an empty file has no first byte
	text := strings.TrimLeft(string(head[:n]), "\ufeff \t\r\n")
	return text != "" && text[0] == c, nil
}

// newID derives the ID of an imported task from its old one: the same each
// time.
func newID(kind, old string, created time.Time) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + old))
	id, err := signalbox.NewID(created, strings.NewReader(string(sum[:])))
	if err != nil { // 32 bytes are enough
		panic(err)
	}
	return id
}

// OldID is the ID that a task had in its original queue; "" if it keeps its
// ID.
func OldID(t api.ExportedTask) string {
	rest, ours := strings.CutPrefix(t.Key, signalbox.ImportPrefix)
	if kind, old, ok := strings.Cut(rest, " "); ours && ok && newID(kind, old, t.CreatedAt) == t.QueueID {
		return old
	}
	return ""
}

// plain sets the fields that are the same for all tasks of other queues.
func plain(kind, old string, created time.Time) api.ExportedTask {
	created = created.UTC().Truncate(time.Millisecond)
	return api.ExportedTask{
		QueueID: newID(kind, old, created), State: string(signalbox.Pending), Queue: signalbox.QueueWork, Limit: signalbox.LimitWork,
		EnqueuedAt: created, CreatedAt: created, Session: string(signalbox.SessionRequire), OnLost: string(signalbox.LostFail), MaxAttempts: 3,
		Source: string(signalbox.SourceAPI), Key: signalbox.ImportKey(kind, old), KeyHash: "import",
	}
}

// request stores a request in the task.
func request(t *api.ExportedTask, r signalbox.Request) error {
	r.Queue = t.Queue
	r.HadEnv = len(t.Env) > 0
	t.HadEnv = r.HadEnv
	t.Preview = cmp.Or(t.Preview, signalbox.Preview(r.Prompt))
	var err error
	t.Request, err = json.Marshal(r)
	return err
}

// Head is the first line of an export, Foot the last one: an export without it
// was cut off.
type (
	Head struct {
		Export  int    `json:"signalbox_export"` // 1: version of the format
		Version string `json:"version,omitempty"`
		At      string `json:"exported_at,omitempty"`
	}
	Foot struct {
		End   bool `json:"end"`
		Tasks int  `json:"tasks"`
	}
)

// Used is a line of an export with the usage of runs on some days. It is not
// counted in Foot.
type Used struct {
	Usage []api.ExportedUsage `json:"usage"`
}

// Format is the version of the format.
const Format = 1

// maxLine bounds a line of an export, in bytes: a task's texts with each byte
// escaped.
const maxLine = 32 << 20

// lines reads an export. If a task occurs twice, its last line counts: it
// changed while the export was made.
func lines(path string) Source {
	return Source{What: "an export", Read: func(ctx context.Context, to Taker) error {
		in := io.ReadSeeker(os.Stdin)
		if path != "-" {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			in = f
		}
		r := reader{name: path, last: map[string]int{}}
		if path == "-" { // a pipe cannot be read twice, so a task's first line counts
			return r.read(ctx, in, to)
		}
		err := r.read(ctx, in, Taker{
			Task: func(t api.ExportedTask) error { r.last[t.QueueID] = r.line; return nil }, Usage: func([]api.ExportedUsage) error { return nil }, Bad: to.Bad,
		})
		if err != nil && !errors.Is(err, errCut) && !errors.Is(err, errCount) { // of an incomplete export everything present is taken
			return err
		}
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return r.read(ctx, in, Taker{Task: func(t api.ExportedTask) error {
			if r.last[t.QueueID] != r.line {
				return nil
			}
			return to.Task(t)
		}, Usage: to.Usage, Bad: func(string, string) {}}) // already reported
	}}
}

type reader struct {
	name string
	last map[string]int // by task: the line that counts
	line int
}

// Errors of an incomplete export.
var (
	errCut   = errors.New("the export is truncated: its last line is missing; everything in it was read")
	errCount = errors.New("the export is inconsistent")
)

func (r *reader) read(ctx context.Context, in io.Reader, to Taker) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), maxLine)
	whole, records, foot := false, 0, Foot{}
	for r.line = 1; scan.Scan(); r.line++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		text := scan.Bytes()
		if r.line == 1 {
			if err := checkHead(r.name, text); err != nil {
				return err
			}
			continue
		}
		if len(text) == 0 {
			continue
		}
		if foot, whole = footOf(text); whole {
			continue
		}
		if rows := usageOf(text); rows != nil {
			if err := to.Usage(rows); err != nil {
				return err
			}
			continue
		}
		records++
		var t api.ExportedTask
		if err := json.Unmarshal(text, &t); err != nil || t.QueueID == "" {
			to.Bad(fmt.Sprintf("%s:%d", r.name, r.line), "no task can be read from it")
			continue
		}
		if err := to.Task(t); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", r.name, r.line, err)
	}
	if r.line == 1 {
		return fmt.Errorf("%s is empty: want the lines of signalbox export", r.name)
	}
	switch {
	case !whole:
		return errCut
	case foot.Tasks != records:
		return fmt.Errorf("%w: its last line says %d tasks, but it has %d; everything in it was read. Export again, or look for the other tasks", errCount, foot.Tasks, records)
	}
	return nil
}

// usageOf parses a line of usage; nil: it is another line.
func usageOf(text []byte) []api.ExportedUsage {
	var u Used
	if !bytes.HasPrefix(text, []byte(`{"usage":`)) || json.Unmarshal(text, &u) != nil {
		return nil
	}
	return u.Usage
}

func checkHead(name string, text []byte) error {
	var h Head
	switch err := json.Unmarshal(text, &h); {
	case err != nil || h.Export == 0:
		return fmt.Errorf("%s does not begin like an export of signalbox: want a first line such as {\"signalbox_export\":1}", name)
	case h.Export > Format:
		return fmt.Errorf("%s has format %d, of a later version; this one reads up to %d", name, h.Export, Format)
	}
	return nil
}

func footOf(text []byte) (Foot, bool) {
	var f Foot
	err := json.Unmarshal(text, &f)
	return f, err == nil && f.End
}
