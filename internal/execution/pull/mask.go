package pull

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// maxEndedMasks bounds the masks kept of runs that have ended here.
const maxEndedMasks = 256

// endedMask is the mask of a run that has ended here and may still be reported on: the
// store erases the env of an ended task.
type endedMask struct {
	id   string
	mask execution.Mask
	at   time.Time // monotonic: when the run ended here
}

// hide masks an agent's message about a task.
func (l *Lanes) hide(ctx context.Context, t *signalbox.Task, text string) string {
	if text == "" || (!t.HasEnv && !t.State.Terminal()) {
		return text
	}
	return l.maskFor(ctx, t.ID).Hide(text)
}

func (l *Lanes) maskFor(ctx context.Context, id string) execution.Mask {
	l.Mu.Lock()
	m, known := l.knownMask(id)
	l.Mu.Unlock()
	if !known {
		m, _ = l.loadRequest(ctx, id)
	}
	return m
}

// loadRequest reads the request of a run that this director did not deliver, once, and
// returns its mask: if its env cannot be decrypted, all messages are withheld.
func (l *Lanes) loadRequest(ctx context.Context, id string) (execution.Mask, error) {
	c, err := l.Engine.Load(ctx, id)
	if c.Task.ID == "" {
		return execution.NoMask, err
	}
	m := execution.MaskOf(&c)
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if r := l.Runs[id]; r != nil && r.Matches(&c.Task) {
		r.SetRequest(&c)
		r.requestLoaded = true
	} else {
		l.keepMask(id, m)
	}
	return m, nil
}

func (l *Lanes) knownMask(id string) (m execution.Mask, known bool) {
	if r := l.Runs[id]; r != nil && r.requestLoaded {
		return r.Mask, true
	}
	for i := len(l.endedMasks) - 1; i >= 0; i-- {
		if v := &l.endedMasks[i]; v.id == id {
			return v.mask, true
		}
	}
	return m, false
}

// keepMask keeps the mask of a run that is not, or no longer, known here for as long as its
// final report may come. Mu is held.
func (l *Lanes) keepMask(id string, m execution.Mask) {
	now := l.opts.Monotonic()
	l.endedMasks = append(l.endedMasks, endedMask{id, m, now})
	for len(l.endedMasks) > maxEndedMasks || now.Sub(l.endedMasks[0].at) > l.Engine.Options().ExecutionTTL {
		l.endedMasks = l.endedMasks[1:]
	}
}
