package view

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Landing is the way of a task's work to a branch; nil where nobody wants it there.
func Landing(t *signalbox.Task) *api.Landing {
	l := t.Landing
	if l == nil {
		return nil
	}
	return &api.Landing{
		QueueID: t.ID, State: string(l.State), Text: l.String(), Onto: l.Onto, Method: l.Method, FastForward: l.FastForward, LandTask: l.LandTask,
		Turn: l.Turn, Rounds: l.Rounds, Failures: l.Failures, NotBefore: Time(l.NotBefore), Commit: l.Commit, Was: l.Was, URL: l.URL,
		AskedBy: l.By, AskedAt: l.At, Since: l.Since,
	}
}
