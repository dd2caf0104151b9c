package httpapi

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
	liveSnapshot = "snapshot"
	liveChange   = "change"
	liveResync   = "resync"
	liveBeat     = "beat"
)

// beatEvery is after how long without an event or a look a reader is told that
// the director lives: a little less than the second that is promised.
const beatEvery = 950 * time.Millisecond

// maxLiveWrite bounds the changes that are written at once to a reader that is
// behind, in bytes: it is all that a slow one holds.
const maxLiveWrite = 64 << 10

// live is GET /api/live.
func (d *Server) live(w http.ResponseWriter, r *http.Request) error {
	place, err := livePlace(r)
	if err != nil {
		return err
	}
	signs, leave := d.projection.join()
	defer leave()
	if err := d.projection.fresh(r.Context()); err != nil {
		return err
	}
	s, err := d.streams.Open(w)
	if err != nil || r.Method == http.MethodHead {
		return err
	}
	defer s.Close()
	reader := liveReader{from: &d.projection, stream: s, who: callerOf(r)}
	if reader.begin(place) != nil {
		return nil
	}
	return reader.follow(r.Context(), signs, d.life.Done())
}

// place is where a reader stands: EPOCH.REVISION.
type place struct {
	epoch    string
	revision int64
}

func (p place) String() string { return p.epoch + "." + strconv.FormatInt(p.revision, 10) }

// livePlace reads the place of a reader that comes back; zero: it is new.
func livePlace(r *http.Request) (place, error) {
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

// liveReader is one reader of the stream. It holds what it is being sent and
// its place, so that a slow one costs nothing else.
type liveReader struct {
	from   *projection
	stream *httpio.Stream
	who    caller
	at     int64 // the revision that it has
}

// begin sends a new reader everything, and one that comes back what it missed.
func (l *liveReader) begin(from place) error {
	if from.epoch == "" {
		return l.whole(liveSnapshot)
	}
	own := from.epoch == l.epoch()
	missed, ok := l.from.since(place{l.from.epoch, from.revision})
	if !own || !ok {
		return l.whole(liveResync)
	}
	l.at = from.revision
	if len(missed) == 0 {
		return l.beat()
	}
	l.at = missed[len(missed)-1].revision
	frame, err := together(missed).event(liveChange, l.who)
	if err != nil {
		return err
	}
	return l.stream.Write(frame)
}

// epoch is that of the reader's own events.
func (l *liveReader) epoch() string { return l.who.epoch(l.from.epoch) }

// epoch is that of the events for a caller. Who may not see all has one of its
// own: what another saw, or it saw itself with other rights, is no place from
// which it can go on.
func (c caller) epoch(of string) string {
	if !c.limited() {
		return of
	}
	sees := sha256.Sum256([]byte(strings.Join(append([]string{of, c.who.Key()}, c.who.Agents...), "\n")))
	return of + "-" + hex.EncodeToString(sees[:6])
}

// whole sends everything as it is.
func (l *liveReader) whole(name string) error {
	frame, revision, err := l.from.everything(name, l.who)
	if err != nil {
		return err
	}
	l.at = revision
	return l.stream.Write(frame)
}

// follow sends what changes until the reader goes away or the director stops.
func (l *liveReader) follow(ctx context.Context, signs, stopping <-chan struct{}) error {
	quiet := time.NewTimer(beatEvery)
	defer quiet.Stop()
	beat := false
	for {
		sent, err := l.news()
		if err == nil && !sent && beat {
			err = l.beat()
		}
		if err != nil || ended(ctx, stopping) {
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

// news sends the changes that the reader does not have, each for itself, or
// everything where they are no longer known.
func (l *liveReader) news() (sent bool, err error) {
	changes, ok := l.from.since(place{l.from.epoch, l.at})
	if !ok {
		return true, l.whole(liveResync)
	}
	if len(changes) == 0 {
		return false, nil
	}
	var out []byte
	for _, c := range changes { // the rest follows at once, where it is still known then
		frame := c.frame
		if l.who.limited() {
			if frame, err = c.event(liveChange, l.who); err != nil {
				return false, err
			}
		}
		out = append(out, frame...)
		l.at = c.revision
		if len(out) > maxLiveWrite {
			break
		}
	}
	return true, l.stream.Write(out)
}

// beat says that nothing has changed. Where that is not known, because the
// store does not answer, it only keeps the connection: what is shown must not
// look as if it were of this moment.
func (l *liveReader) beat() error {
	at, current := l.from.lastLook()
	if !current {
		return l.stream.KeepAlive()
	}
	return l.stream.SendTransient(liveBeat, api.Beat{Revision: l.at, At: at, Epoch: l.epoch()})
}
