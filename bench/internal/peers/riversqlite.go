package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// RiverSQLite is River on SQLite in a separate process, controlled by orders.
type RiverSQLite struct {
	in      io.WriteCloser
	answers *json.Decoder
}

// Order is an order to the process; see bench/riversqlite.
type Order struct {
	Do      string        `json:"do"`
	N       int           `json:"n"`
	Span    time.Duration `json:"span"`
	Path    string        `json:"path"`
	Best    bool          `json:"best"`
	Pause   time.Duration `json:"pause"`
	Workers int           `json:"workers"`
}

// start builds and starts it, once for all sides of a run.
func (r *RiverSQLite) start(ctx context.Context, b *measure.Bench) error {
	if r.in != nil {
		return nil
	}
	path, err := director.Program(ctx, "github.com/signalbox-ai/signalbox/bench", "riversqlite", filepath.Join(b.Bin, "riversqlite"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.in, r.answers = in, json.NewDecoder(bufio.NewReader(out))
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return nil
}

// obey sends an order and returns the values.
func (r *RiverSQLite) obey(o Order) (measure.Values, error) {
	if err := json.NewEncoder(r.in).Encode(o); err != nil {
		return nil, err
	}
	var a struct {
		Error  string         `json:"error"`
		Values measure.Values `json:"values"`
	}
	if err := r.answers.Decode(&a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Values, nil
}

func (r *RiverSQLite) fresh(b *measure.Bench) string {
	return filepath.Join(b.Dir, fmt.Sprintf("river-%d.db", files.Add(1)))
}

// Side returns a side that executes one order in a new file in each round.
func (r *RiverSQLite) Side(name string, o func(b *measure.Bench) Order) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		return func(context.Context) (measure.Values, error) {
			o := o(b)
			o.Path, o.Span = r.fresh(b), b.Span
			return r.obey(o)
		}, r.start(ctx, b)
	}}
}

// Deep is queue.Deep for this process.
func (r *RiverSQLite) Deep(name string, waiting int) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		if err := r.start(ctx, b); err != nil {
			return nil, err
		}
		path := r.fresh(b)
		if _, err := r.obey(Order{Do: "deep", N: b.Scale(waiting), Path: path}); err != nil {
			return nil, err
		}
		bytes, err := SQLiteBytes(path)
		if err != nil {
			return nil, err
		}
		return func(context.Context) (measure.Values, error) {
			v, err := r.obey(Order{Do: "deep", Path: path, Span: b.Span, Best: true})
			if err == nil {
				v[load.Storage] = bytes / float64(b.Scale(waiting))
			}
			return v, err
		}, nil
	}}
}

// SQLiteBytes returns the size of a database, including its log.
func SQLiteBytes(path string) (float64, error) {
	f, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	log, err := os.Stat(path + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		return float64(f.Size()), nil
	}
	if err != nil {
		return 0, err
	}
	return float64(f.Size() + log.Size()), nil
}
