package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// The names of the events of GET /api/live.
const (
	eventSnapshot = "snapshot"
	eventChange   = "change"
	eventResync   = "resync"
	eventBeat     = "beat"
)

// beatEvery is the time without events after which a reader gets a beat: a little less
// than the second that api.Live promises.
const beatEvery = 950 * time.Millisecond

// maxWrite is the size in bytes, exceeded by at most one delta, of one write to a reader.
// A slow reader costs no more memory than that.
const maxWrite = 64 << 10

// Serve serves GET /api/live with what the principal may see, until the reader
// disconnects or the director stops. It returns an error only if the stream could not
// start.
func (p *Projection) Serve(w http.ResponseWriter, r *http.Request, who signalbox.Principal) error {
	after, err := parseEventID(r)
	if err != nil {
		return err
	}
	wake, unsubscribe := p.subscribe()
	defer unsubscribe()
	if err := p.EnsureFresh(r.Context()); err != nil {
		return err
	}
	s, err := p.cfg.Streams.Open(w)
	if err != nil {
		return err
	}
	defer s.Close()
	if r.Method == http.MethodHead {
		return nil
	}
	reader := reader{projection: p, stream: s, who: who}
	if reader.start(after) == nil {
		reader.follow(r.Context(), wake, p.cfg.Life.Done())
	}
	return nil
}

// eventID is the id of a snapshot, change or resync event: EPOCH.REVISION.
type eventID struct {
	epoch    string
	revision int64
}

func (id eventID) String() string { return id.epoch + "." + strconv.FormatInt(id.revision, 10) }

// parseEventID returns the id of the last event that a reconnecting reader got, from the
// header Last-Event-ID or the parameter after; zero for a new reader.
func parseEventID(r *http.Request) (eventID, error) {
	name, text := "Last-Event-ID", r.Header.Get("Last-Event-ID")
	if text == "" {
		name, text = "after", httpio.Param(r, "after")
	}
	if text == "" {
		return eventID{}, nil
	}
	epoch, number, ok := strings.Cut(text, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || epoch == "" || err != nil || n < 0 {
		return eventID{}, signalbox.Invalid(name, "%s must be the id of an event of this stream, EPOCH.REVISION, not %q", name, httpio.Clip(text))
	}
	return eventID{epoch, n}, nil
}

// reader is one connection to the stream.
type reader struct {
	projection *Projection
	stream     *httpio.Stream
	who        signalbox.Principal
	revision   int64 // revision that the reader has
}

// start sends a new reader a snapshot, and a reconnecting reader the deltas since its last
// event.
func (r *reader) start(after eventID) error {
	if after.epoch == "" {
		return r.sendFull(eventSnapshot)
	}
	missed, ok := r.projection.deltasAfter(after.revision)
	if after.epoch != r.epoch() || !ok {
		return r.sendFull(eventResync)
	}
	r.revision = after.revision
	if len(missed) == 0 {
		return r.beat()
	}
	r.revision = missed[len(missed)-1].revision
	frame, err := mergeDeltas(missed).event(eventChange, r.who)
	if err != nil {
		return err
	}
	return r.stream.Write(frame)
}

// epoch is the epoch of the events for this reader.
func (r *reader) epoch() string { return epochFor(r.projection.epoch, r.who) }

// epochFor derives the epoch of the events for a principal from that of the projection. A
// limited principal has an epoch of its own, which changes with its rights, so that a
// reader cannot resume from events of other readers or other rights.
func epochFor(epoch string, who signalbox.Principal) string {
	if !who.Limited() {
		return epoch
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{epoch, who.Key()}, who.Agents...), "\n")))
	return epoch + "-" + hex.EncodeToString(sum[:6])
}

// sendFull sends the whole view, as an event with that name.
func (r *reader) sendFull(event string) error {
	frame, revision, err := r.projection.snapshot(event, r.who)
	if err != nil {
		return err
	}
	r.revision = revision
	return r.stream.Write(frame)
}

// follow sends changes and beats until the reader goes away or the director stops.
func (r *reader) follow(ctx context.Context, wake, stopping <-chan struct{}) {
	quiet := time.NewTimer(beatEvery)
	defer quiet.Stop()
	beat := false // due if there is no change to send
	for {
		sent, err := r.sendDeltas()
		if err == nil && !sent && beat {
			err = r.beat()
		}
		if err != nil || httpio.Ended(ctx, stopping) {
			return
		}
		quiet.Reset(beatEvery)
		if beat = !sent; sent {
			continue
		}
		select {
		case <-wake:
		case <-quiet.C:
		case <-stopping:
			return
		case <-ctx.Done():
			return
		}
	}
}

// sendDeltas sends the deltas that the reader does not have, each as an event, up to
// maxWrite; or the whole view if some of them are no longer kept.
func (r *reader) sendDeltas() (sent bool, err error) {
	deltas, ok := r.projection.deltasAfter(r.revision)
	if !ok {
		return true, r.sendFull(eventResync)
	}
	if len(deltas) == 0 {
		return false, nil
	}
	var out []byte
	for _, d := range deltas {
		frame := d.frame
		if r.who.Limited() {
			if frame, err = d.event(eventChange, r.who); err != nil {
				return false, err
			}
		}
		out = append(out, frame...)
		r.revision = d.revision
		if len(out) > maxWrite {
			break
		}
	}
	return true, r.stream.Write(out)
}

// beat tells the reader that nothing has changed. If the view is stale because the store
// does not answer, it sends only a comment that keeps the connection alive.
func (r *reader) beat() error {
	at, current := r.projection.lastRefresh()
	if !current {
		return r.stream.KeepAlive()
	}
	return r.stream.SendTransient(eventBeat, api.Beat{Revision: r.revision, At: at, Epoch: r.epoch()})
}
