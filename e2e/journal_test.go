package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// prompt is the smallest request.
func prompt(text string) api.SubmitRequest { return api.SubmitRequest{Prompt: text} }

// journal follows the director's events from the first one on, across
// restarts.
type journal struct {
	t       *testing.T
	mu      sync.Mutex
	events  []api.Event
	changed chan struct{} // closed at each event
}

func (b *box) journal(c *client.Client) *journal {
	j := &journal{t: b.t, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event, err := range c.Events(ctx, client.EventsOptions{After: 0}) {
			if err != nil {
				if ctx.Err() == nil {
					b.t.Errorf("event stream: %v", err)
				}
				return
			}
			j.add(event)
		}
	}()
	b.t.Cleanup(func() { cancel(); <-ended })
	return j
}

func (j *journal) add(e api.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case e.Kind == client.KindReset:
		j.t.Errorf("the stream was reset before seq %d", e.Seq)
	case len(j.events) > 0 && e.Seq != j.events[len(j.events)-1].Seq+1:
		j.t.Errorf("event %d came after %d", e.Seq, j.events[len(j.events)-1].Seq)
	}
	j.events = append(j.events, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) all() []api.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// await waits until the events satisfy a condition, at most for the given
// time, and reports whether they do.
func (j *journal) await(most time.Duration, met func([]api.Event) bool) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		j.mu.Lock()
		events, changed := j.events[:len(j.events):len(j.events)], j.changed
		j.mu.Unlock()
		if met(events) {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-j.t.Context().Done():
			return false
		}
	}
}

// execLine is a line of an agent's own log of executions.
type execLine struct {
	QueueID string    `json:"queue_id"`
	TaskID  string    `json:"task_id"`
	Fence   int64     `json:"fence"`
	Slot    int       `json:"slot"`
	Event   string    `json:"event"`
	At      time.Time `json:"at"`
	PID     int       `json:"pid"`
}

// executions reads such a log. A missing file has no lines.
func executions(t *testing.T, path string) []execLine {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []execLine
	for s := bufio.NewScanner(f); s.Scan(); {
		var l execLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v in %q", path, err, s.Text())
		}
		lines = append(lines, l)
	}
	return lines
}

// starts are the IDs of the executions that began, in order.
func starts(lines []execLine) []string {
	var ids []string
	for _, l := range lines {
		if l.Event == "start" {
			ids = append(ids, l.QueueID)
		}
	}
	return ids
}

// executedOnce expects exactly one execution of a task in the box's log.
func (b *box) executedOnce(id string) {
	b.t.Helper()
	if n := len(slices.DeleteFunc(starts(executions(b.t, b.execLog())), func(s string) bool { return s != id })); n != 1 {
		b.t.Errorf("%s was executed %d times\n%s", id, n, b.read(b.execLog()))
	}
}

// kinds are the kinds of one task's events.
func kinds(events []api.Event, id string) string {
	var words []string
	for _, e := range events {
		if e.QueueID == id {
			words = append(words, e.Kind)
		}
	}
	return strings.Join(words, " ")
}

// whole is every event of a task with all its data, one per line.
func whole(events []api.Event, id string) string {
	var lines []string
	for _, e := range events {
		if e.QueueID == id {
			lines = append(lines, fmt.Sprintf("%+v", e))
		}
	}
	return strings.Join(lines, "\n")
}
