package port

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Source is where tasks come from.
type Source struct {
	// What it is, for people: "an export", "the folder of a work queue", …
	What string
	// Read gives each task to take, in the order in which they wait. A record
	// that cannot be read is given to bad, with where it stands, and passed over.
	Read func(ctx context.Context, take func(api.ExportedTask) error, bad func(where, why string)) error
}

// Open finds out what a source is: "-" and a file are an export or a
// .tasksQueue, a folder is that of a work queue, a redis:// URL an execution
// queue.
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
		return Source{}, fmt.Errorf("%s is no file: give what it carries on standard input, with - in its place", source)
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

// startsWith reports whether the first byte of a file that is no space is
// that one.
func startsWith(path string, c byte) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := f.Read(head) // an empty file begins with nothing
	text := strings.TrimLeft(string(head[:n]), "\ufeff \t\r\n")
	return text != "" && text[0] == c, nil
}

// newID makes the id of a task of before from its old one: the same each time.
func newID(kind, old string, created time.Time) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + old))
	id, err := signalbox.NewID(created, strings.NewReader(string(sum[:])))
	if err != nil { // 32 bytes are enough
		panic(err)
	}
	return id
}

// OldID is the id that a task had in the queue that it comes from; "" where it
// keeps its own.
func OldID(t api.ExportedTask) string {
	rest, ours := strings.CutPrefix(t.Key, signalbox.ImportPrefix)
	if kind, old, ok := strings.Cut(rest, " "); ours && ok && newID(kind, old, t.CreatedAt) == t.QueueID {
		return old
	}
	return ""
}

// plain fills in what a task has that came by no other way than the queue.
func plain(kind, old string, created time.Time) api.ExportedTask {
	created = created.UTC().Truncate(time.Millisecond)
	return api.ExportedTask{
		QueueID: newID(kind, old, created), State: string(signalbox.Pending), Queue: signalbox.QueueWork, Limit: signalbox.LimitWork,
		EnqueuedAt: created, CreatedAt: created, Session: string(signalbox.SessionRequire), OnLost: string(signalbox.LostFail), MaxAttempts: 3,
		Source: string(signalbox.SourceAPI), Key: signalbox.ImportKey(kind, old), KeyHash: "import",
	}
}

// request packs what was asked for.
func request(t *api.ExportedTask, r signalbox.Request) error {
	r.Queue = t.Queue
	r.HadEnv = len(t.Env) > 0
	t.HadEnv = r.HadEnv
	if t.Preview == "" {
		t.Preview = signalbox.Preview(r.Prompt)
	}
	var err error
	t.Request, err = json.Marshal(r)
	return err
}
