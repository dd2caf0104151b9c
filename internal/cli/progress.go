package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// progress is standard error while its last line is written over and over.
// Notes that come in between, from whichever goroutine, make it go first.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	drawn bool
}

const clearLine = "\r\x1b[K"

func (p *progress) draw(text string, columns int) {
	const usual = 80
	if columns <= 0 {
		columns = usual
	}
	runes := []rune(clean(text))
	if len(runes) >= columns {
		runes = append(runes[:max(0, columns-2)], '…')
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.w, clearLine+string(runes))
	p.drawn = true
}

// clear makes way for other lines.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}

func (p *progress) clearLocked() {
	if p.drawn {
		fmt.Fprint(p.w, clearLine)
		p.drawn = false
	}
}

func (p *progress) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
	fmt.Fprintln(p.w, text)
}

// drawTask draws the line for a task that has not ended.
func (w *waiter) drawTask(ctx context.Context, task api.Task) {
	parts := []string{shortID(task.QueueID)}
	if task.State == "pending" {
		parts = append(parts, place(task), eta(task.ETA), w.behind(ctx, task))
	} else {
		parts = append(parts, running(task, w.io.Now()))
	}
	w.line.draw(joinParts(parts), w.io.Columns)
}

func joinParts(parts []string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, " · ")
}

// place says where in which line a task waits, such as "2nd for coder".
func place(task api.Task) string {
	if task.Position <= 0 {
		return "waiting"
	}
	about := ""
	if task.PositionApproximate {
		about = "about "
	}
	return about + ordinal(task.Position) + " for " + whoServes(task.Queue)
}

func whoServes(queue string) string {
	if name, ok := signalbox.QueueAgent(queue); ok {
		return name
	}
	if kind, ok := signalbox.QueueKind(queue); ok {
		return "any " + kind
	}
	if queue == signalbox.QueueCommands || queue == signalbox.QueueCalls {
		return queue
	}
	return "any agent"
}

// eta is a range in its larger end's unit, such as "about 3–9 min".
func eta(e *api.ETA) string {
	if e == nil {
		return ""
	}
	unit, size := "s", 1.0
	switch {
	case e.HighSeconds >= 2*3600:
		unit, size = "h", 3600
	case e.HighSeconds >= 120:
		unit, size = "min", 60
	}
	low, high := int(e.LowSeconds/size+0.5), int(e.HighSeconds/size+0.5)
	if low >= high {
		return fmt.Sprintf("about %d %s", high, unit)
	}
	return fmt.Sprintf("about %d–%d %s", low, high, unit)
}

// behind names the task that is in the way and how long it has run. What
// cannot be had is left out: it is only a line of progress.
func (w *waiter) behind(ctx context.Context, task api.Task) string {
	why, err := w.c.Why(ctx, task.QueueID)
	if err != nil {
		return ""
	}
	for _, gate := range why.Gates {
		switch {
		case gate.OK:
		case gate.TaskID == "":
			return gate.Text
		default:
			text := "behind " + shortID(gate.TaskID)
			if other, err := w.c.Task(ctx, gate.TaskID); err == nil && other.StartedAt != nil {
				text += " (" + ago(w.io.Now().Sub(*other.StartedAt)) + ")"
			}
			return text
		}
	}
	return ""
}

// running says what a task that is not waiting does, and for how long.
func running(task api.Task, now time.Time) string {
	text, since := task.State, task.StartedAt
	switch {
	case task.State == "dispatching" && isExecutor(task.Agent):
		since = task.DispatchedAt
	case task.State == "dispatching":
		text, since = "dispatching to "+task.Agent, task.DispatchedAt
	case task.State == "working" && !isExecutor(task.Agent):
		text = "working on " + task.Agent
	}
	if since != nil {
		text += " · " + ago(now.Sub(*since))
	}
	return text
}
