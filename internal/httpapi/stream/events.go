package stream

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// kindReset names the event that says: what lies between the event before
// and this one will not come.
const kindReset = "reset"

// Events stream the journal, with the events of the moment.
type Events struct {
	Engine    *engine.Engine
	Gate      *access.Gate
	Runs      Runs
	Forwarder *forward.Forwarder
	Tails     *Outputs
	Journal   *Feed
	heads     lineHeads
	Streams   *httpio.Streams
	Logger    *slog.Logger
	Life      context.Context
}

// Serve is GET /api/events.
func (h *Events) Serve(w http.ResponseWriter, r *http.Request) error {
	after, err := httpio.Position("after", httpio.Param(r, "after"))
	if err != nil {
		return err
	}
	seen, err := httpio.Position("Last-Event-ID", r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	if seen >= 0 {
		after = seen // a reader that comes back asks with the URL of its first time
	}
	filter, err := h.eventFilter(r)
	if err != nil {
		return err
	}
	extra, err := h.momentsOf(r, filter)
	if err != nil {
		return err
	}
	signs, leave := h.Journal.Join() // before the range is read: nothing is missed in between
	defer leave()
	oldest, newest, err := h.Engine.Read().JournalRange(r.Context())
	if err == nil {
		err = extra.begin(r.Context(), newest)
	}
	if err != nil {
		return err
	}
	s, err := h.Streams.Open(w)
	if err != nil {
		return err
	}
	defer s.Close()
	if r.Method == http.MethodHead {
		return nil
	}
	reader := eventReader{feed: h.Journal, stream: s, filter: filter, moments: extra, now: h.Engine.Now}
	if err := reader.begin(after, oldest, newest); err != nil {
		return nil
	}
	if err := reader.follow(r.Context(), signs, h.Life.Done()); err != nil {
		return s.Fail(h.Logger, err)
	}
	return nil
}

// eventReader is one reader of the journal. It holds one batch at a time.
type eventReader struct {
	feed    *Feed
	stream  *httpio.Stream
	filter  eventFilter
	moments *moments // nil: the reader asked for none
	now     func() time.Time
	at      int64 // seq of the last entry that was sent or passed over
	told    int64 // the last place that the reader was told
}

// eventFilter says which events a reader gets: those that it asked for, of
// what it may see.
type eventFilter struct {
	who   signalbox.Principal
	task  string // id of the only task
	agent string // the only agent
}

func (h *Events) eventFilter(r *http.Request) (eventFilter, error) {
	f := eventFilter{who: access.CallerOf(r).Who, task: httpio.Param(r, "queue_id"), agent: httpio.Param(r, "agent")}
	if f.agent != "" && !signalbox.ValidName(f.agent) {
		return f, signalbox.Invalid("agent", "%q is not the name of an agent", httpio.Clip(f.agent))
	}
	if f.task == "" {
		return f, nil
	}
	id, err := access.ImportedID(r.Context(), h.Engine, f.task)
	if err != nil {
		return f, err
	}
	if f.task = id; !signalbox.ValidID(id) {
		return f, signalbox.Invalid("queue_id", "%q is not the id of a task", httpio.Clip(f.task))
	}
	return f, h.Gate.SeesTask(r.Context(), f.task, f.who)
}

func (f *eventFilter) takes(e *framed) bool {
	return (f.task == "" || e.queueID == f.task) && f.ofAgent(e.queue, e.agent) && f.who.Sees(e.owner, e.queue, e.agent)
}

func (f *eventFilter) ofAgent(queue, agent string) bool {
	return f.agent == "" || agent == f.agent || queue == signalbox.AgentQueue(f.agent) || queue == signalbox.BypassQueue(f.agent)
}

func (f *eventFilter) takesTask(t *signalbox.Task) bool {
	return (f.task == "" || t.ID == f.task) && f.ofAgent(t.Queue, t.Agent) && f.who.SeesTask(t)
}

// begin finds the place from which to go on, and tells the reader where that
// is when it is not the one asked for. asked is -1 for "now".
func (e *eventReader) begin(asked, oldest, newest int64) error {
	switch {
	case asked < 0:
		e.at = newest
	case asked > newest: // the journal of another store
		return e.reset(newest)
	case oldest > 0 && asked+1 < oldest:
		return e.reset(oldest - 1)
	default:
		e.at = asked
	}
	e.told = e.at
	return e.stream.SendID(e.at)
}

// reset says that the stream goes on behind seq at, whatever came before.
// The id is the place from which a reader that comes back goes on.
func (e *eventReader) reset(at int64) error {
	e.at, e.told = at, at
	return e.stream.Send(at, kindReset, api.Event{
		Seq: at + 1, At: e.now(), Kind: kindReset, Message: "events before this one are not available: read the state anew",
	})
}

// follow sends what comes until the reader goes away or the director stops,
// which are no errors.
func (e *eventReader) follow(ctx context.Context, signs, stopping <-chan struct{}) error {
	beat := time.NewTicker(httpio.KeepAliveEvery)
	defer beat.Stop()
	due, stop := e.moments.ticks()
	defer stop()
	for {
		for {
			batch, err := e.feed.after(ctx, e.at)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			if e.send(batch) != nil {
				return nil
			}
			if len(batch) < FeedBatch {
				break
			}
			if httpio.Ended(ctx, stopping) {
				return nil
			}
		}
		select {
		case <-signs:
		case <-due:
			if err := e.moments.tell(ctx, e.stream); err != nil {
				if e.stream.Gone || ctx.Err() != nil {
					return nil
				}
				return err
			}
		case <-beat.C:
			if e.beat() != nil {
				return nil
			}
		case <-stopping:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// send writes a batch with one flush. Where it does not go on behind the last
// entry sent, entries were pruned while the reader was slow, or the store lost
// some: the reader is told so.
func (e *eventReader) send(batch []framed) error {
	var out []byte
	for _, f := range batch {
		if f.seq != e.at+1 {
			if err := e.write(out); err != nil {
				return err
			}
			if err := e.reset(f.seq - 1); err != nil {
				return err
			}
			out = nil
		}
		e.at = f.seq
		e.moments.note(&f)
		if e.filter.takes(&f) {
			out = append(out, f.bytes...)
			e.told = f.seq
		}
	}
	return e.write(out)
}

func (e *eventReader) write(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	return e.stream.Write(out)
}

// beat keeps the connection alive, and moves the place of a reader for whom
// nothing was, so that it need not be looked for again.
func (e *eventReader) beat() error {
	if e.told == e.at {
		return e.stream.KeepAlive()
	}
	e.told = e.at
	return e.stream.SendID(e.at)
}
