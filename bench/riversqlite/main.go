// Command riversqlite runs River on SQLite for the benchmarks, which start it and send
// it orders: a line of JSON in, a line out. It is a separate module because the newest
// SQLite driver on the module proxy works with an older River than the one used on
// PostgreSQL.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// order is one line of the input.
type order struct {
	Do      string        `json:"do"` // open, submit, later, work or close
	N       int           `json:"n"`  // callers, tasks or workers
	Span    time.Duration `json:"span"`
	Path    string        `json:"path"`
	Best    bool          `json:"best"`    // shortest cooldown; inserts of a thousand
	Pause   time.Duration `json:"pause"`   // pickup: before each
	Workers int           `json:"workers"` // cycles, pickup
}

// answer is one line of the output.
type answer struct {
	Error  string             `json:"error,omitempty"`
	Values map[string]float64 `json:"values,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var o order
		var a answer
		err := json.Unmarshal(lines.Bytes(), &o)
		if err == nil {
			a.Values, err = obey(context.Background(), o)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			os.Exit(1)
		}
	}
}

// obey executes an order with its own queue.
func obey(ctx context.Context, o order) (map[string]float64, error) {
	q, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer q.close()
	switch o.Do {
	case "submit":
		return q.submits(ctx, o)
	case "cycles":
		return q.cycles(ctx, o)
	case "pickup":
		return q.pickups(ctx, o)
	case "half":
		return q.half(ctx, o)
	case "deep":
		return q.deep(ctx, o)
	}
	return nil, fmt.Errorf("unknown order %q", o.Do)
}
