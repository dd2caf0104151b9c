package view

import (
	"fmt"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Landing is the API form of a task's landing; nil if it has none. place is its place among the
// landings onto the branch, 0 if it has none or it is not shown.
func Landing(t *signalbox.Task, place int) *api.Landing {
	l := t.Landing
	if l == nil {
		return nil
	}
	return &api.Landing{
		QueueID: t.ID, State: string(l.State), Text: l.String() + Before(place), Place: place, Onto: l.Onto, Method: l.Method, FastForward: l.FastForward, LandTask: l.LandTask,
		Turn: l.Turn, Rounds: l.Rounds, Failures: l.Failures, NotBefore: Time(l.NotBefore), Commit: l.Commit, Was: l.Was, URL: l.URL,
		AskedBy: l.By, AskedAt: l.At, Since: l.Since,
	}
}

// Before says how many land before the landing at a place, as the end of a sentence.
func Before(place int) string {
	switch {
	case place < 2:
		return ""
	case place == 2:
		return "; one lands there before it"
	}
	return fmt.Sprintf("; %d land there before it", place-1)
}
