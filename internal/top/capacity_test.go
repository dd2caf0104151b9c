package top

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

func TestRateAndClosingOfToolQueue(t *testing.T) {
	began := time.Now()
	m := &model{o: Options{Now: func() time.Time { return began }}}
	now := m.now()
	next := now.Add(6500 * time.Millisecond)
	rate := &api.ToolRate{N: 10, PerSeconds: 60, Burst: 1}
	late := *rate
	late.Next = &next
	closed := &api.ToolClosed{Until: now.Add(90500 * time.Millisecond), Why: "api answered 429\x1b"}
	for name, x := range map[string]struct {
		queue api.ToolQueue
		want  []string
	}{
		"none":    {api.ToolQueue{}, nil},
		"rate":    {api.ToolQueue{Rate: rate}, []string{"10/1m0s"}},
		"waits":   {api.ToolQueue{Rate: &late}, []string{"10/1m0s, next in 6s"}},
		"closed":  {api.ToolQueue{Rate: rate, Closed: closed}, []string{"◐ closed for another 1m 30s · api answered 429", " · 10/1m0s"}},
		"keys":    {api.ToolQueue{Keys: 5, KeysClosed: 2, Closed: closed}, []string{"◐ 2 of 5 keys closed for another 1m 30s"}},
		"is over": {api.ToolQueue{Closed: &api.ToolClosed{Until: now}}, nil},
	} {
		got := m.queueHeld(&x.queue)
		for _, want := range x.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q has no %q", name, got, want)
			}
		}
		if len(x.want) == 0 && got != "" || strings.Contains(got, "429\x1b") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
