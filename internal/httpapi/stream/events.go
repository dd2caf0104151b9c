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

// kindReset is the event that says that entries between the previous event and this one
// will not come.
const kindReset = "reset"

// Events streams the journal, with transient events.
type Events struct {
	Engine    *engine.Engine
	Gate      *access.Gate
	Runs      Runs
	Forwarder *forward.Forwarder
	Tails     *Outputs
	Journal   *Feed
	heads     lineCache
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
		after = seen // a reader that reconnects repeats its first URL
	}
	filter, err := h.eventFilter(r)
	if err != nil {
		return err
	}
	extra, err := h.transientsOf(r, filter)
	if err != nil {
		return err
	}
	signs, leave := h.Journal.Join() // before the range is read, so that nothing is missed
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
	reader := eventReader{feed: h.Journal, stream: s, filter: filter, transients: extra, now: h.Engine.Now}
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
	feed       *Feed
	stream     *httpio.Stream
	filter     eventFilter
	transients *transients // nil: the reader asked for none
	now        func() time.Time
	at         int64 // seq of the last entry sent or filtered out
	sent       int64 // the last seq that the reader was sent
}

// eventFilter decides which events a reader gets: those that it requested and may see.
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

func (f *eventFilter) takes(e *frame) bool {
	return (f.task == "" || e.queueID == f.task) && f.ofAgent(e.queue, e.agent) && f.who.Sees(e.owner, e.queue, e.agent)
}

func (f *eventFilter) ofAgent(queue, agent string) bool {
	return f.agent == "" || agent == f.agent || queue == signalbox.AgentQueue(f.agent) || queue == signalbox.BypassQueue(f.agent)
}

func (f *eventFilter) takesTask(t *signalbox.Task) bool {
	return (f.task == "" || t.ID == f.task) && f.ofAgent(t.Queue, t.Agent) && f.who.SeesTask(t)
}

// begin finds the seq to continue from, and sends it to the reader if it is not the
// requested one. asked is -1 for "now".
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
	e.sent = e.at
	return e.stream.SendID(e.at)
}

// reset tells the reader that the stream continues after seq at. A reader that
// reconnects continues from the id.
func (e *eventReader) reset(at int64) error {
	e.at, e.sent = at, at
	return e.stream.Send(at, kindReset, api.Event{
		Seq: at + 1, At: e.now(), Kind: kindReset, Message: "events before this one are not available: read the state anew",
	})
}

// follow sends new entries until the reader disconnects or the director stops. Neither
// is an error.
func (e *eventReader) follow(ctx context.Context, signs, stopping <-chan struct{}) error {
	beat := time.NewTicker(httpio.KeepAliveEvery)
	defer beat.Stop()
	due, stop := e.transients.ticks()
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
			if err := e.transients.flush(ctx, e.stream); err != nil {
				if e.stream.Gone || ctx.Err() != nil {
					return nil
				}
				return err
			}
		case <-beat.C:
			if e.keepAlive() != nil {
				return nil
			}
		case <-stopping:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// send writes a batch with one flush. A gap before the batch (entries pruned while
// the reader was slow, or lost by the store) sends a reset first.
func (e *eventReader) send(batch []frame) error {
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
		e.transients.record(&f)
		if e.filter.takes(&f) {
			out = append(out, f.bytes...)
			e.sent = f.seq
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

// keepAlive keeps the connection alive. It also advances the seq of a reader whose filter
// matched nothing, so that these entries are not read again.
func (e *eventReader) keepAlive() error {
	if e.sent == e.at {
		return e.stream.KeepAlive()
	}
	e.sent = e.at
	return e.stream.SendID(e.at)
}
