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

// The events of the moment, which a reader of the journal asks for besides.
const (
	kindPosition = "position"
	kindOutput   = "output"
)

// moments makes the events of the moment of one reader: places in line and
// output, at most five times a second. They are not in the journal; a reader
// that comes back gets what is so then. A nil *moments makes none.
type moments struct {
	events *Events
	filter eventFilter
	lines  *lineMoments // nil: not asked for
	output *outputMoments
}

// momentsOf reads ?include=.
func (h *Events) momentsOf(r *http.Request, f eventFilter) (*moments, error) {
	asked := httpio.Param(r, "include")
	if asked == "" {
		return nil, nil
	}
	m := &moments{events: h, filter: f}
	for _, one := range strings.Split(asked, ",") {
		switch strings.TrimSpace(one) {
		case kindPosition:
			m.lines = newLineMoments()
		case kindOutput:
			m.output = &outputMoments{}
		default:
			return nil, signalbox.Invalid("include", "include must be position, output, or both with a comma, not %q", httpio.Clip(asked))
		}
	}
	return m, nil
}

// begin takes stock, when the newest entry of the journal is newest: what is
// older is no event of the moment.
func (m *moments) begin(ctx context.Context, newest int64) error {
	if m == nil || m.output == nil {
		return nil
	}
	m.output.since = newest
	return m.lookForRuns(ctx)
}

// ticks says when there may be something to tell.
func (m *moments) ticks() (due <-chan time.Time, stop func()) {
	if m == nil {
		return nil, func() {}
	}
	t := time.NewTicker(Coalesce)
	return t.C, t.Stop
}

// note takes account of an entry of the journal.
func (m *moments) note(e *framed) {
	if m == nil {
		return
	}
	if m.lines != nil && e.movesLine() {
		m.lines.changed(e.queue, e.kind == signalbox.EventMove)
	}
	if m.output != nil && e.queueID != "" {
		m.output.note(e, m.filter.takes(e))
	}
}

// tell sends what is new.
func (m *moments) tell(ctx context.Context, s *httpio.Stream) error {
	if m.lines != nil {
		if err := m.tellLines(ctx, s); err != nil {
			return err
		}
	}
	if m.output != nil {
		return m.tellOutput(ctx, s)
	}
	return nil
}

// send writes events of the moment with one flush.
func (m *moments) send(s *httpio.Stream, kind string, events []api.Event) error {
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

// Bounds of what a reader is told of lines.
const (
	lineLength   = 200    // places of one queue
	linesPerTick = 64     // queues that are read at once
	maxToldIDs   = 20_000 // places that are remembered; beyond them, places are told anew
)

// lineMoments tells of places in line.
type lineMoments struct {
	all   bool // every queue is to be looked at
	dirty map[string]struct{}
	told  map[string][]string // by queue, the ids in the order last told
	size  int                 // ids in told
}

func newLineMoments() *lineMoments {
	return &lineMoments{all: true, dirty: map[string]struct{}{}, told: map[string][]string{}}
}

// changed notes that places in a queue may be others now.
func (l *lineMoments) changed(queue string, all bool) {
	l.all = l.all || all || len(l.dirty) >= maxLines
	l.dirty[queue] = struct{}{}
}

// tellLines sends the places that changed in the queues that did.
func (m *moments) tellLines(ctx context.Context, s *httpio.Stream) error {
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
	looked := 0
	for queue := range l.dirty {
		if looked++; looked > linesPerTick {
			break
		}
		delete(l.dirty, queue)
		events, err := m.lineEvents(ctx, queue)
		if err != nil {
			return err
		}
		if err := m.send(s, kindPosition, events); err != nil {
			return err
		}
	}
	return nil
}

func (m *moments) lineEvents(ctx context.Context, queue string) ([]api.Event, error) {
	waiting, err := m.events.lineHead(ctx, queue)
	if err != nil {
		return nil, err
	}
	l := m.lines
	before := l.told[queue]
	l.size -= len(before)
	delete(l.told, queue)
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
	if len(now) > 0 && l.size+len(now) <= maxToldIDs {
		l.told[queue] = now
		l.size += len(now)
	}
	return events, nil
}

// Bounds of the output that a reader is told.
const (
	maxFollowed  = 64       // tasks at once
	outputRate   = 64 << 10 // bytes in a second
	maxOutputGap = 32 << 10 // how far behind a task a reader may be before output is left out
)

// outputMoments tells what running tasks print.
type outputMoments struct {
	since    int64 // entries up to this one are from before the reader came
	crowded  bool  // more runs than can be followed
	followed []*followed
	budget   int
	next     int // who is asked first, in turns
}

type followed struct {
	id    string
	queue string
	agent string
	after int64
	begin bool // its log is told from its end on: it ran before the reader came
	ended bool
	far   *farLog // of one that another director follows; nil before it was asked
}

// leave stops reading the log at another director.
func (f *followed) leave() {
	if f.far != nil {
		f.far.stop()
	}
}

// note follows a task that starts and lets go of one that ends. visible says
// that the reader may see it and asked for it.
func (o *outputMoments) note(e *framed, visible bool) {
	if e.seq <= o.since {
		return
	}
	at := slices.IndexFunc(o.followed, func(f *followed) bool { return f.id == e.queueID })
	starts := e.kind == signalbox.EventAccept
	switch {
	case at >= 0:
		f := o.followed[at]
		f.begin = f.begin && !starts // it began while stock was taken
		f.ended = f.ended || !e.state.InFlight()
	case !starts || !visible:
	case len(o.followed) >= maxFollowed:
		o.crowded = true
	default:
		o.followed = append(o.followed, &followed{id: e.queueID, queue: e.queue, agent: e.agent})
	}
}
