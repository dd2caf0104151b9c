package director

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// maxPauseSeconds bounds a pause by length, 366 days; a pause without an end
// has none.
const maxPauseSeconds = 366 * 24 * 3600

// pauseEnd returns when a pause ends by itself; zero for never.
func (d *Director) pauseEnd(req api.PauseRequest) (time.Time, error) {
	switch {
	case req.Until != nil && req.Seconds != 0:
		return time.Time{}, signalbox.Invalid("seconds", "until and seconds both say when the pause ends: give one of them")
	case req.Until != nil:
		return *req.Until, nil
	case req.Seconds < 0 || req.Seconds > maxPauseSeconds:
		return time.Time{}, signalbox.Invalid("seconds", "seconds must be 0 to %d, not %d", maxPauseSeconds, req.Seconds)
	case req.Seconds > 0:
		return d.engine.Now().Add(time.Duration(req.Seconds) * time.Second), nil
	}
	return time.Time{}, nil
}

// pauseWords is how a queue stands, for the audit log: by a pause of its own,
// not by one of all queues.
func (d *Director) pauseWords(ctx context.Context, queue string) (map[string]any, error) {
	pauses, err := d.engine.Read().Pauses(ctx)
	for _, p := range pauses {
		if p.Queue != queue {
			continue
		}
		words := map[string]any{"paused": true, "reason": p.Reason, "by": p.By}
		if p.UntilMS != 0 {
			words["until"] = time.UnixMilli(p.UntilMS).UTC()
		}
		return words, err
	}
	return map[string]any{"paused": false}, err
}

// auditPause writes down a pause or a resume that was done, with what was
// before and what is now.
func (d *Director) auditPause(r *http.Request, action string, req api.PauseRequest, before map[string]any) error {
	after, err := d.pauseWords(r.Context(), req.Queue)
	if err != nil { // it was done all the same, and is to be written down
		after = map[string]any{"paused": action == "pause"}
	}
	said := map[string]any{"before": before, "after": after}
	if req.Reason != "" {
		said["reason"] = req.Reason
	}
	return d.audit(r, signalbox.Audit{
		EventType: "queue", Action: action, Resource: orAll(req.Queue), AgentName: queueAgent(req.Queue), Details: details(said),
	})
}
