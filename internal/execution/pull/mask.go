package pull

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// maxVoid is how many masks of runs that are over here are kept.
const maxVoid = 256

// voidMask is the mask of a run that is over here and may still be heard of: the
// store erases the env of a task that has ended.
type voidMask struct {
	id   string
	mask execution.Mask
	at   time.Time // monotonic: since then
}

// hide returns what an agent says of a task as it may be stored and logged.
func (l *Lanes) hide(ctx context.Context, t *signalbox.Task, text string) string {
	if text == "" || (!t.HasEnv && !t.State.Terminal()) {
		return text
	}
	return l.maskOf(ctx, t.ID).Hide(text)
}

func (l *Lanes) maskOf(ctx context.Context, id string) execution.Mask {
	l.Mu.Lock()
	m, known := l.knownMask(id)
	l.Mu.Unlock()
	if known {
		return m
	}
	c, err := l.Engine.Load(ctx, id)
	if err != nil {
		return execution.NoMask
	}
	return execution.MaskOf(&c)
}

func (l *Lanes) knownMask(id string) (m execution.Mask, known bool) {
	if r := l.Runs[id]; r != nil && r.learned {
		return r.Mask, true
	}
	for i := len(l.voids) - 1; i >= 0; i-- {
		if v := &l.voids[i]; v.id == id {
			return v.mask, true
		}
	}
	return m, false
}

// keepMask keeps the mask of a run that is dropped for as long as its last word
// may come.
func (l *Lanes) keepMask(r *run) {
	if !r.learned || r.Mask.Empty() {
		return
	}
	now := l.opts.Monotonic()
	l.voids = append(l.voids, voidMask{r.Task.ID, r.Mask, now})
	for len(l.voids) > maxVoid || now.Sub(l.voids[0].at) > l.Engine.ExecutionTTL() {
		l.voids = l.voids[1:]
	}
}
