package alone

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// bookVersion is the form of the file. It changes where an older program would
// misread it.
const bookVersion = 1

// bookForm is the file.
type bookForm struct {
	Version   int        `json:"version"`
	Schedules []pageForm `json:"schedules"`
}

type pageForm struct {
	Schedule signalbox.Schedule      `json:"schedule"`
	Runs     []signalbox.ScheduleRun `json:"runs"`
}

func (p *page) encode() error {
	var err error
	p.text, err = json.Marshal(pageForm{p.row, p.runs})
	return err
}

// bookText is the file with these pages, one a line.
func bookText(pages map[string]*page) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"version":%d,"schedules":[`, bookVersion)
	sep := "\n"
	for _, p := range pages {
		out.WriteString(sep)
		out.Write(p.text)
		sep = ",\n"
	}
	out.WriteString("\n]}\n")
	return out.Bytes()
}

// readBook reads the file. One that is not there is an empty book; one that
// cannot be understood is set aside.
func readBook(path string, log *slog.Logger) (map[string]*page, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]*page{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the scheduler's book: %w", err)
	}
	pages, err := parseBook(data)
	var newer *newerError
	if err == nil || errors.As(err, &newer) {
		return pages, err
	}
	aside := fmt.Sprintf("%s.corrupt-%s", path, time.Now().UTC().Format("20060102T150405.000Z"))
	if moved := os.Rename(path, aside); moved != nil {
		return nil, fmt.Errorf("the scheduler's book %s cannot be understood (%w), nor set aside: %w", path, err, moved)
	}
	log.Error("the scheduler's book could not be understood and was set aside; it begins anew, and makes up for nothing that was missed",
		"file", path, "set_aside", aside, "error", err)
	return map[string]*page{}, nil
}

// newerError says that a newer program wrote the file, which must not be
// thrown away.
type newerError struct{ version int }

func (e *newerError) Error() string {
	return fmt.Sprintf("the scheduler's book is of version %d, and this program knows %d: use the program that wrote it, or another --data", e.version, bookVersion)
}

func parseBook(data []byte) (map[string]*page, error) {
	var form bookForm
	if err := json.Unmarshal(data, &form); err != nil {
		return nil, err
	}
	switch {
	case form.Version > bookVersion:
		return nil, &newerError{form.Version}
	case form.Version < 1:
		return nil, errors.New("it has no version")
	}
	pages := map[string]*page{}
	names := map[string]bool{}
	for i := range form.Schedules {
		f := &form.Schedules[i]
		if f.Schedule.ID == "" || f.Schedule.Rev < 1 || pages[f.Schedule.ID] != nil || names[f.Schedule.Name] {
			return nil, fmt.Errorf("schedule %d has no id or revision, or stands there twice", i+1)
		}
		p := &page{row: f.Schedule, runs: f.Runs}
		if err := p.encode(); err != nil {
			return nil, err
		}
		pages[p.row.ID], names[p.row.Name] = p, true
	}
	return pages, nil
}

// lockFile takes an exclusive lock, which ends with the process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the scheduler's lock: %w", err)
	}
	err = filelock.Take(f)
	if errors.Is(err, filelock.ErrHeld) {
		err = fmt.Errorf("another scheduler uses the folder %s: stop it, or give this one another with --data", filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
