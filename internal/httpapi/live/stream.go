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

// beatEvery is after how long without an event or a look a reader is told that
// the director lives: a little less than the second that is promised.
const beatEvery = 950 * time.Millisecond

// maxWrite bounds the changes that are written at once to a reader that is
// behind, in bytes: it is all that a slow one holds.
const maxWrite = 64 << 10

// Serve is GET /api/live, as who may see it.
func (p *Projection) Serve(w http.ResponseWriter, r *http.Request, who signalbox.Principal) error {
	place, err := parsePlace(r)
	if err != nil {
		return err
	}
	signs, leave := p.subscribe()
	defer leave()
	if err := p.EnsureFresh(r.Context()); err != nil {
		return err
	}
	s, err := p.cfg.Streams.Open(w)
	if err != nil || r.Method == http.MethodHead {
		return err
	}
	defer s.Close()
	reader := reader{from: p, stream: s, who: who}
	if reader.start(place) != nil {
		return nil
	}
	return reader.follow(r.Context(), signs, p.cfg.Life.Done())
}

// place is where a reader stands: EPOCH.REVISION.
type place struct {
	epoch    string
	revision int64
}

func (p place) String() string { return p.epoch + "." + strconv.FormatInt(p.revision, 10) }

// parsePlace reads the place of a reader that comes back; zero: it is new.
func parsePlace(r *http.Request) (place, error) {
	name, text := "Last-Event-ID", r.Header.Get("Last-Event-ID")
	if text == "" {
		name, text = "after", httpio.Param(r, "after")
	}
	if text == "" {
		return place{}, nil
	}
	epoch, number, ok := strings.Cut(text, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || epoch == "" || err != nil || n < 0 {
		return place{}, signalbox.Invalid(name, "%s must be the id of an event of this stream, EPOCH.REVISION, not %q", name, httpio.Clip(text))
	}
	return place{epoch, n}, nil
}

// reader is one reader of the stream. It holds what it is being sent and
// its place, so that a slow one costs nothing else.
type reader struct {
	from   *Projection
	stream *httpio.Stream
	who    signalbox.Principal
	at     int64 // the revision that it has
}

// start sends a new reader everything, and one that comes back what it missed.
func (l *reader) start(from place) error {
	if from.epoch == "" {
		return l.sendAll(eventSnapshot)
	}
	own := from.epoch == l.epoch()
	missed, ok := l.from.changesSince(place{l.from.epoch, from.revision})
	if !own || !ok {
		return l.sendAll(eventResync)
	}
	l.at = from.revision
	if len(missed) == 0 {
		return l.beat()
	}
	l.at = missed[len(missed)-1].revision
	frame, err := mergeDeltas(missed).event(eventChange, l.who)
	if err != nil {
		return err
	}
	return l.stream.Write(frame)
}

// epoch is that of the reader's own events.
func (l *reader) epoch() string { return epochFor(l.from.epoch, l.who) }

// epochFor is the epoch of the events for a principal. Who may not see all has one of its
// own: what another saw, or it saw itself with other rights, is no place from
// which it can go on.
func epochFor(of string, who signalbox.Principal) string {
	if !who.Limited() {
		return of
	}
	sees := sha256.Sum256([]byte(strings.Join(append([]string{of, who.Key()}, who.Agents...), "\n")))
	return of + "-" + hex.EncodeToString(sees[:6])
}

// sendAll sends everything as it is.
func (l *reader) sendAll(name string) error {
	frame, revision, err := l.from.snapshot(name, l.who)
	if err != nil {
		return err
	}
	l.at = revision
	return l.stream.Write(frame)
}

// follow sends what changes until the reader goes away or the director stops.
func (l *reader) follow(ctx context.Context, signs, stopping <-chan struct{}) error {
	quiet := time.NewTimer(beatEvery)
	defer quiet.Stop()
	beat := false
	for {
		sent, err := l.sendChanges()
		if err == nil && !sent && beat {
			err = l.beat()
		}
		if err != nil || httpio.Ended(ctx, stopping) {
			return nil
		}
		quiet.Reset(beatEvery)
		if beat = !sent; sent {
			continue
		}
		select {
		case <-signs:
		case <-quiet.C:
		case <-stopping:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// sendChanges sends the changes that the reader does not have, each for itself, or
// everything where they are no longer known.
func (l *reader) sendChanges() (sent bool, err error) {
	changes, ok := l.from.changesSince(place{l.from.epoch, l.at})
	if !ok {
		return true, l.sendAll(eventResync)
	}
	if len(changes) == 0 {
		return false, nil
	}
	var out []byte
	for _, c := range changes { // the rest follows at once, where it is still known then
		frame := c.frame
		if l.who.Limited() {
			if frame, err = c.event(eventChange, l.who); err != nil {
				return false, err
			}
		}
		out = append(out, frame...)
		l.at = c.revision
		if len(out) > maxWrite {
			break
		}
	}
	return true, l.stream.Write(out)
}

// beat says that nothing has changed. Where that is not known, because the
// store does not answer, it only keeps the connection: what is shown must not
// look as if it were of this moment.
func (l *reader) beat() error {
	at, current := l.from.lastRefresh()
	if !current {
		return l.stream.KeepAlive()
	}
	return l.stream.SendTransient(eventBeat, api.Beat{Revision: l.at, At: at, Epoch: l.epoch()})
}
