package stream

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// maxLines bounds the queues whose last change is remembered.
const maxLines = 2 * signalbox.MaxAgents

// Touch stands for the last change of places in a queue. Two that are equal
// say that there was none in between; two that differ say nothing.
type Touch struct{ generation, seq int64 }

// Touched says when somebody's place in a queue last changed. It means
// something only to those who follow the feed.
func (f *Feed) Touched(queue string) Touch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Touch{f.generation, f.lines[queue]}
}

// forgetLines says that any place in any queue may have changed; the caller
// holds mu.
func (f *Feed) forgetLines() {
	clear(f.lines)
	f.generation++
}

// noteLines notes what changed somebody's place; the caller holds mu.
func (f *Feed) noteLines(entries []framed) {
	for i := range entries {
		e := &entries[i]
		switch {
		case !e.movesLine():
		case e.kind == signalbox.EventMove || len(f.lines) >= maxLines: // the queue it left is not named
			f.forgetLines()
		default:
			f.lines[e.queue] = e.seq
		}
	}
}

// movesLine reports whether an entry may change who stands where in a queue.
func (f *framed) movesLine() bool {
	switch f.kind {
	case signalbox.EventAccept, signalbox.EventFinish, signalbox.EventStop, signalbox.EventPaused, signalbox.EventResumed:
		return false
	}
	return f.queueID != ""
}

// maxHeads bounds the queues whose first places are kept at hand.
const maxHeads = 64

// lineHeads keeps the first places of queues, so that many readers cost one
// read of the store.
type lineHeads struct {
	mu    sync.Mutex
	heads map[string]lineHead
}

type lineHead struct {
	touched Touch // when it was read
	tasks   []signalbox.Task
}

// lineHead returns the first tasks that wait in a queue. The caller follows
// the feed, and does not change them.
func (h *Events) lineHead(ctx context.Context, queue string) ([]signalbox.Task, error) {
	touched := h.Journal.Touched(queue) // before the read: what changes during it is read again
	kept := &h.heads
	kept.mu.Lock()
	head, ok := kept.heads[queue]
	kept.mu.Unlock()
	if ok && head.touched == touched {
		return head.tasks, nil
	}
	tasks, err := h.Engine.Read().Waiting(ctx, queue, store.Cursor{}, lineLength)
	if err != nil {
		return nil, err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.heads == nil || len(kept.heads) >= maxHeads {
		kept.heads = map[string]lineHead{}
	}
	kept.heads[queue] = lineHead{touched, tasks}
	return tasks, nil
}
