package stream

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// maxLines limits the queues whose last change is kept.
const maxLines = 2 * signalbox.MaxAgents

// LineVersion identifies the last change of positions in a queue. Equal versions
// mean no change in between; different ones mean nothing.
type LineVersion struct{ generation, seq int64 }

// LineVersion returns the version of a queue's positions. It is valid only for
// callers that have joined the feed.
func (f *Feed) LineVersion(queue string) LineVersion {
	f.mu.Lock()
	defer f.mu.Unlock()
	return LineVersion{f.generation, f.lines[queue]}
}

// invalidateLines records that any position in any queue may have changed. The caller
// holds mu.
func (f *Feed) invalidateLines() {
	clear(f.lines)
	f.generation++
}

// recordLineChanges records the queues whose positions changed. The caller holds mu.
func (f *Feed) recordLineChanges(entries []frame) {
	for i := range entries {
		e := &entries[i]
		switch {
		case !e.changesLine():
		case e.movesBetweenLines() || len(f.lines) >= maxLines:
			f.invalidateLines()
		default:
			f.lines[e.queue] = e.seq
		}
	}
}

// movesBetweenLines reports whether the entry may belong to a task that left another queue.
// The entry does not name that queue.
func (f *frame) movesBetweenLines() bool {
	return f.kind == signalbox.EventMove || f.kind == signalbox.EventEdit
}

// changesLine reports whether an entry may change positions in a queue.
func (f *frame) changesLine() bool {
	switch f.kind {
	case signalbox.EventAccept, signalbox.EventFinish, signalbox.EventStop, signalbox.EventPaused, signalbox.EventResumed:
		return false
	}
	return f.queueID != ""
}

// maxHeads limits the queues whose first tasks are cached.
const maxHeads = 64

// lineCache caches the first tasks of queues, so that many readers cost one read
// of the store.
type lineCache struct {
	mu    sync.Mutex
	lines map[string]cachedLine
}

type cachedLine struct {
	version LineVersion // at the time of the read
	tasks   []signalbox.Task
}

// firstInLine returns the first waiting tasks of a queue. The caller must have joined the
// feed, and must not modify them.
func (h *Events) firstInLine(ctx context.Context, queue string) ([]signalbox.Task, error) {
	version := h.Journal.LineVersion(queue) // taken before the read, so that changes during it cause another read
	kept := &h.heads
	kept.mu.Lock()
	head, ok := kept.lines[queue]
	kept.mu.Unlock()
	if ok && head.version == version {
		return head.tasks, nil
	}
	tasks, err := h.Engine.Read().Waiting(ctx, queue, store.Cursor{}, lineLength)
	if err != nil {
		return nil, err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.lines == nil || len(kept.lines) >= maxHeads {
		kept.lines = map[string]cachedLine{}
	}
	kept.lines[queue] = cachedLine{version, tasks}
	return tasks, nil
}
