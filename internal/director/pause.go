package director

import (
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
