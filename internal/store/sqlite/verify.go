package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// ErrHeld is returned if a process has the database open.
var ErrHeld = errors.New("the database is open")

// Copy copies the database at path, with its write-ahead log, to a new file below folder and returns its
// path. The original is not written, not even its lock. It returns ErrHeld if a process has the database open
// or opened it meanwhile: then the copy may be inconsistent.
func Copy(ctx context.Context, path, folder string) (string, error) {
	if err := free(path); err != nil {
		return "", err
	}
	to := filepath.Join(folder, "copy.db")
	before, err := states(path)
	if err != nil {
		return "", err
	}
	for _, end := range []string{"", "-wal"} {
		if err := copyFile(ctx, path+end, to+end); err != nil {
			return "", err
		}
	}
	if err := free(path); err != nil {
		return "", err
	}
	after, err := states(path)
	if err == nil && after != before {
		err = ErrHeld
	}
	return to, err
}

// free reports who holds the lock, and takes it only briefly, shared, so that concurrent checks
// do not see each other.
func free(path string) error {
	f, err := os.Open(path + ".lock")
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was never opened here
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := filelock.Look(f); errors.Is(err, filelock.ErrHeld) {
		return errors.Join(ErrHeld, held(path, f))
	}
	return nil
}

type fileState struct {
	size, log       int64
	changed, logged int64
}

func states(path string) (s fileState, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.size, s.changed = info.Size(), info.ModTime().UnixNano()
	if info, err = os.Stat(path + "-wal"); err == nil {
		s.log, s.logged = info.Size(), info.ModTime().UnixNano()
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return s, err
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) && from[len(from)-4:] == "-wal" {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, &contextReader{ctx, in})
	return errors.Join(err, out.Close())
}

// contextReader ends a long copy with its context.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (p *contextReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.from.Read(b)
}

// Verify reads all pages of the database at path and reports the first damaged ones. No other
// process may have it open, so use a Copy.
func Verify(ctx context.Context, path string) error {
	c, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the database cannot be opened: %v", err)
	}
	defer func() { _ = c.close() }()
	c.db.SetInterrupt(ctx.Done())
	answer, err := c.exec("PRAGMA quick_check(1)")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the database cannot be read: %v", err)
	case answer != "ok":
		return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the database is damaged: %s", fmt.Sprintf("%.300s", answer))
	}
	return nil
}

// withoutSlotLimit is how many of the newest tasks TasksWithoutSlot checks.
const withoutSlotLimit = 10_000

func (b *Backend) tasksWithoutSlot(ctx context.Context) (ids []string, err error) {
	err = b.read(ctx, func(c *conn) error {
		q := c.on(stWithoutSlot)
		q.int(withoutSlotLimit).int(rowDispatching).int(rowWorking).int(rowCancelling)
		for q.next() {
			ids = append(ids, q.textAt(0))
		}
		return q.end()
	})
	return ids, err
}
