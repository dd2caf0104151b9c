package port

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/signalbox-ai/signalbox/api"
)

// Head is the first line of an export, Foot its last one: an export without it
// was cut off.
type (
	Head struct {
		Export  int    `json:"signalbox_export"` // 1: the version of the format
		Version string `json:"version,omitempty"`
		At      string `json:"exported_at,omitempty"`
	}
	Foot struct {
		End   bool `json:"end"`
		Tasks int  `json:"tasks"`
	}
)

// Format is the version of the lines.
const Format = 1

// maxLine bounds a line of an export: a task's texts, each byte escaped.
const maxLine = 32 << 20

// lines reads an export. Of a task that stands in it twice the last line
// counts: it changed while the export was made.
func lines(path string) Source {
	return Source{What: "an export", Read: func(ctx context.Context, take func(api.ExportedTask) error, bad func(where, why string)) error {
		in := io.ReadSeeker(os.Stdin)
		if path != "-" {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			in = f
		}
		r := reader{name: path, bad: bad, last: map[string]int{}}
		if path == "-" { // a pipe cannot be read twice: the first line of a task counts
			return r.read(ctx, in, take)
		}
		err := r.read(ctx, in, func(t api.ExportedTask) error { r.last[t.QueueID] = r.line; return nil })
		if err != nil && !errors.Is(err, errCut) && !errors.Is(err, errCount) { // of what is not whole is taken what there is
			return err
		}
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return err
		}
		r.bad = func(string, string) {} // said already
		return r.read(ctx, in, func(t api.ExportedTask) error {
			if r.last[t.QueueID] != r.line {
				return nil
			}
			return take(t)
		})
	}}
}

type reader struct {
	name string
	bad  func(where, why string)
	last map[string]int // the line that counts, by task
	line int
}

// What is wrong with an export that is not whole.
var (
	errCut   = errors.New("the export was cut off: its last line is missing; all that stands in it was read")
	errCount = errors.New("the export is not what was written")
)

func (r *reader) read(ctx context.Context, in io.Reader, take func(api.ExportedTask) error) error {
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
		records++
		var t api.ExportedTask
		if err := json.Unmarshal(text, &t); err != nil || t.QueueID == "" {
			r.bad(fmt.Sprintf("%s:%d", r.name, r.line), "no task can be read from it")
			continue
		}
		if err := take(t); err != nil {
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
		return fmt.Errorf("%w: its last line says %d tasks, and its lines are those of %d; all that stands in it was read. Export again, or look for what became of the others", errCount, foot.Tasks, records)
	}
	return nil
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
