package stream

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Transient events, which a reader of the journal can ask for as well.
const (
	kindPosition = "position"
	kindOutput   = "output"
)

// transients makes the transient events of one reader: positions in line and
// output, at most five times a second. They are not in the journal: a reader
// that reconnects gets the state at that time. A nil *transients makes none.
type transients struct {
	events *Events
	filter eventFilter
	lines  *positionEvents // nil: not asked for
	output *outputEvents
}

// transientsOf parses ?include=.
func (h *Events) transientsOf(r *http.Request, f eventFilter) (*transients, error) {
	asked := httpio.Param(r, "include")
	if asked == "" {
		return nil, nil
	}
	m := &transients{events: h, filter: f}
	for _, one := range strings.Split(asked, ",") {
		switch strings.TrimSpace(one) {
		case kindPosition:
			m.lines = newPositionEvents()
		case kindOutput:
			m.output = &outputEvents{}
		default:
			return nil, signalbox.Invalid("include", "include must be position, output, or both separated by a comma, not %q", httpio.Clip(asked))
		}
	}
	return m, nil
}

// begin starts after the journal entry newest: older entries make no transient events.
func (m *transients) begin(ctx context.Context, newest int64) error {
	if m == nil || m.output == nil {
		return nil
	}
	m.output.since = newest
	return m.followRunning(ctx)
}

// ticks returns a channel that fires when there may be something to send.
func (m *transients) ticks() (due <-chan time.Time, stop func()) {
	if m == nil {
		return nil, func() {}
	}
	t := time.NewTicker(CoalesceInterval)
	return t.C, t.Stop
}

// record applies a journal entry.
func (m *transients) record(e *frame) {
	if m == nil {
		return
	}
	if m.lines != nil && e.changesLine() {
		m.lines.changed(e.queue, e.movesBetweenLines())
	}
	if m.output != nil && e.queueID != "" {
		m.output.record(e, m.filter.takes(e))
	}
}

// flush sends what is new.
func (m *transients) flush(ctx context.Context, s *httpio.Stream) error {
	if m.lines != nil {
		if err := m.flushPositions(ctx, s); err != nil {
			return err
		}
	}
	if m.output != nil {
		return m.flushOutput(ctx, s)
	}
	return nil
}

// write sends transient events with one flush.
func (m *transients) write(s *httpio.Stream, kind string, events []api.Event) error {
	if len(events) == 0 {
		return nil
	}
	now := m.events.Engine.Now()
	var out []byte
	for i := range events {
		events[i].Kind, events[i].At = kind, now
		f, err := httpio.TransientEvent(kind, events[i])
		if err != nil {
			return err
		}
		out = append(out, f...)
	}
	return s.Write(out)
}

// Limits for the positions that a reader is sent.
const (
	lineLength   = 200    // positions in one queue
	linesPerTick = 64     // queues read at once
	maxSentIDs   = 20_000 // positions remembered; beyond them, positions are sent again
)

// positionEvents sends positions in line.
type positionEvents struct {
	all   bool // every queue must be read
	dirty map[string]struct{}
	sent  map[string][]string // ids by queue, in the order last sent
	size  int                 // number of ids in sent
}

func newPositionEvents() *positionEvents {
	return &positionEvents{all: true, dirty: map[string]struct{}{}, sent: map[string][]string{}}
}

// changed records that positions in a queue may have changed.
func (l *positionEvents) changed(queue string, all bool) {
	l.all = l.all || all || len(l.dirty) >= maxLines
	l.dirty[queue] = struct{}{}
}

// flushPositions sends the positions that changed.
func (m *transients) flushPositions(ctx context.Context, s *httpio.Stream) error {
	l := m.lines
	if l.all {
		counts, err := m.events.Engine.Read().Counts(ctx)
		if err != nil {
			return err
		}
		l.all = false
		clear(l.dirty)
		for queue := range counts.Queues {
			l.dirty[queue] = struct{}{}
		}
	}
	read := 0
	for queue := range l.dirty {
		if read++; read > linesPerTick {
			break
		}
		delete(l.dirty, queue)
		events, err := m.lineEvents(ctx, queue)
		if err != nil {
			return err
		}
		if err := m.write(s, kindPosition, events); err != nil {
			return err
		}
	}
	return nil
}

func (m *transients) lineEvents(ctx context.Context, queue string) ([]api.Event, error) {
	waiting, err := m.events.firstInLine(ctx, queue)
	if err != nil {
		return nil, err
	}
	l := m.lines
	before := l.sent[queue]
	l.size -= len(before)
	delete(l.sent, queue)
	now := make([]string, 0, len(waiting))
	var events []api.Event
	for i := range waiting {
		t := &waiting[i]
		now = append(now, t.ID)
		if (i < len(before) && before[i] == t.ID) || !m.filter.takesTask(t) {
			continue
		}
		events = append(events, api.Event{QueueID: t.ID, State: string(t.State), Queue: t.Queue, Owner: t.Owner, Position: i + 1})
	}
	if len(now) > 0 && l.size+len(now) <= maxSentIDs {
		l.sent[queue] = now
		l.size += len(now)
	}
	return events, nil
}

// Limits for the output that a reader is sent.
const (
	maxFollowed  = 64       // tasks at once
	outputRate   = 64 << 10 // bytes per second
	maxOutputGap = 32 << 10 // bytes that a reader may lag before output is skipped
)

// outputEvents sends what running tasks print.
type outputEvents struct {
	since    int64 // entries up to this one are older than the reader
	crowded  bool  // more runs than can be followed
	followed []*followed
	budget   int
	next     int // index of the task that is read first, round robin
}

type followed struct {
	id     string
	queue  string
	agent  string
	after  int64
	begin  bool // send the log from its end on, because the task ran before the reader connected
	ended  bool
	remote *remoteLog // log of a task that another director follows; nil until it is read
}

// leave stops reading the log at another director.
func (f *followed) leave() {
	if f.remote != nil {
		f.remote.stop()
	}
}

// record follows a task that starts, and drops one that ends. visible says that the reader
// may see the task and requested it.
func (o *outputEvents) record(e *frame, visible bool) {
	if e.seq <= o.since {
		return
	}
	at := slices.IndexFunc(o.followed, func(f *followed) bool { return f.id == e.queueID })
	starts := e.kind == signalbox.EventAccept
	switch {
	case at >= 0:
		f := o.followed[at]
		f.begin = f.begin && !starts // it started during begin
		f.ended = f.ended || !e.state.InFlight()
	case !starts || !visible:
	case len(o.followed) >= maxFollowed:
		o.crowded = true
	default:
		o.followed = append(o.followed, &followed{id: e.queueID, queue: e.queue, agent: e.agent})
	}
}
