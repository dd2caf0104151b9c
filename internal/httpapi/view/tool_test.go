package view_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestLimitsOfToolQueue(t *testing.T) {
	queues := toolqueue.New(toolqueue.Hooks{})
	rate := toolqueue.Rate{N: 60, Per: time.Minute, Burst: 2}
	if err := queues.Configure(map[string]toolqueue.Config{"api": {Concurrent: 4, Rate: rate}, "each": {Concurrent: 1, Rate: rate, PerKey: true}, "plain": {Concurrent: 1}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, name := range []string{"api", "each"} {
			if p, ok := queues.TryAcquire(name, toolqueue.Who{Key: "secret"}); ok {
				p.Release()
			}
		}
	}
	until := time.Now().Add(time.Minute)
	for key, d := range map[string]time.Duration{"a": time.Minute, "secret": 2 * time.Minute} {
		if err := queues.CloseUntil("each", key, until.Add(d), "429 "+key[:1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := queues.CloseUntil("plain", "", until, "429"); err != nil {
		t.Fatal(err)
	}
	all := queues.All(10)
	api, each, plain := view.ToolQueue(&all[0], signalbox.Principal{}), view.ToolQueue(&all[1], signalbox.Principal{}), view.ToolQueue(&all[2], signalbox.Principal{})
	if r := api.Rate; r == nil || r.N != 60 || r.PerSeconds != 60 || r.Burst != 2 || r.Left == nil || *r.Left != 0 || r.Next == nil || api.PerKey || api.Closed != nil {
		t.Errorf("%+v %+v", api, api.Rate)
	}
	if r := each.Rate; r == nil || r.Left != nil || r.Next != nil || !each.PerKey || each.Keys != 2 || each.KeysClosed != 2 || each.Closed == nil || each.Closed.Why != "429 s" || each.Closed.Since == nil {
		t.Errorf("%+v %+v", each, each.Rate)
	}
	if plain.Rate != nil || plain.Closed == nil || plain.Closed.Why != "429" || plain.Closed.Until.Sub(until).Abs() > time.Second {
		t.Errorf("%+v", plain)
	}
}
