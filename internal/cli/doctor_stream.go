package cli

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

const (
	// streamWait bounds the look at a stream, on which something comes each
	// second.
	streamWait = 6 * time.Second
	// streamBeats is how many events behind the first are looked at.
	streamBeats = 3
	// bunched is by how much less time events may come in than they were sent
	// in: more means that they were held back, and then let go together.
	bunched = 700 * time.Millisecond
	// clockApart is from when on the clocks of two hosts are worth a word.
	clockApart = 2 * time.Second
)

// arrival is an event of the stream: when the director sent it, and when it was
// here.
type arrival struct{ sent, here time.Time }

// checkStream looks whether the director's events come here one by one and in
// time: a proxy between may hold them back. It says too how far the two clocks
// are apart.
func (a *app) checkStream(ctx context.Context) []api.Check {
	c, err := a.client(client.Options{Tries: 1})
	if err != nil {
		return nil // the question before this one says it
	}
	ctx, cancel := context.WithTimeout(ctx, streamWait)
	defer cancel()
	var got []arrival
	for e, err := range c.Live(ctx) {
		if err != nil {
			var refusal *client.Error
			if errors.As(err, &refusal) && (refusal.Status == http.StatusNotFound || refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden) {
				return nil // there is no such stream, or not for this caller
			}
			break
		}
		got = append(got, arrival{e.Live.At, time.Now()})
		if len(got) > streamBeats {
			break
		}
	}
	return judgeStream(got)
}

const areaEvents = "events"

// judgeStream says what the events tell. The first is the snapshot, whose size
// may keep it on its way.
func judgeStream(got []arrival) []api.Check {
	const cure = "let the proxy pass answers of text/event-stream on as they come (nginx: proxy_buffering off; gzip and caches off), and let it keep them open for a minute"
	if len(got) <= streamBeats {
		return []api.Check{{
			Area: areaEvents, State: checkFail, Cure: cure,
			Text: "events do not come as they are sent: of one each second, " + plural(len(got), "event was", "events were") + " here after " + streamWait.String(),
		}}
	}
	first, last := got[1], got[len(got)-1]
	sent, here := last.sent.Sub(first.sent), last.here.Sub(first.here)
	if sent-here > bunched {
		return []api.Check{{
			Area: areaEvents, State: checkFail, Cure: cure,
			Text: "something on the way holds events back: what was sent in " + sent.Round(10*time.Millisecond).String() + " came within " + here.Round(10*time.Millisecond).String(),
		}}
	}
	out := []api.Check{{Area: areaEvents, State: checkOK, Text: "events come one by one, as they are sent"}}
	if off := last.here.Sub(last.sent).Round(10 * time.Millisecond); off.Abs() >= clockApart {
		out = append(out, api.Check{
			Area: "clock", State: checkWarn, Text: "the clock here is " + off.String() + " off the director's",
			Cure: "let both hosts follow a time server; times that are shown as ages are off by that",
		})
	}
	return out
}
