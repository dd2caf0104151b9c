package standalone

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

// fileVersion is the version of the file format. It changes if an older program would misread
// it.
const fileVersion = 1

type fileForm struct {
	Version   int          `json:"version"`
	Schedules []recordForm `json:"schedules"`
}

type recordForm struct {
	Schedule signalbox.Schedule      `json:"schedule"`
	Runs     []signalbox.ScheduleRun `json:"runs"`
}

func (p *record) encode() error {
	var err error
	p.line, err = json.Marshal(recordForm{p.row, p.runs})
	return err
}

// encodeFile encodes the file, one record a line.
func encodeFile(pages map[string]*record) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"version":%d,"schedules":[`, fileVersion)
	sep := "\n"
	for _, p := range pages {
		out.WriteString(sep)
		out.Write(p.line)
		sep = ",\n"
	}
	out.WriteString("\n]}\n")
	return out.Bytes()
}

// readFile reads the file. A missing file is an empty store; a corrupt one is renamed.
func readFile(path string, log *slog.Logger) (map[string]*record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]*record{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the scheduler's file: %w", err)
	}
	pages, err := parseFile(data)
	var newer *newerError
	if err == nil || errors.As(err, &newer) {
		return pages, err
	}
	aside := fmt.Sprintf("%s.corrupt-%s", path, time.Now().UTC().Format("20060102T150405.000Z"))
	if moved := os.Rename(path, aside); moved != nil {
		return nil, fmt.Errorf("the scheduler's file %s cannot be understood (%w), nor set aside: %w", path, err, moved)
	}
	log.Error("the scheduler's file is corrupt and was renamed; the schedules' history starts again, missed runs are not made up for",
		"file", path, "set_aside", aside, "error", err)
	return map[string]*record{}, nil
}

// newerError says that a newer program wrote the file, which must be kept.
type newerError struct{ version int }

func (e *newerError) Error() string {
	return fmt.Sprintf("the scheduler's file is of version %d, and this program knows %d: use the program that wrote it, or another --data", e.version, fileVersion)
}

func parseFile(data []byte) (map[string]*record, error) {
	var form fileForm
	if err := json.Unmarshal(data, &form); err != nil {
		return nil, err
	}
	switch {
	case form.Version > fileVersion:
		return nil, &newerError{form.Version}
	case form.Version < 1:
		return nil, errors.New("it has no version")
	}
	pages := map[string]*record{}
	names := map[string]bool{}
	for i := range form.Schedules {
		f := &form.Schedules[i]
		if f.Schedule.ID == "" || f.Schedule.Rev < 1 || pages[f.Schedule.ID] != nil || names[f.Schedule.Name] {
			return nil, fmt.Errorf("schedule %d has no id or revision, or occurs twice", i+1)
		}
		p := &record{row: f.Schedule, runs: f.Runs}
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
