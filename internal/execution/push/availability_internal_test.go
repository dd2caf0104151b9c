package push

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// TestAvailability is the table of the effect of each event in each state.
func TestAvailability(t *testing.T) {
	states := map[string]availabilityState{"free": free, "occupied": occupied, "refusing": refusing, "forced": forced, "dataLoss": dataLoss}
	names := map[availabilityState]string{}
	for name, s := range states {
		names[s] = name
	}
	other := []string{"other"}
	for event, c := range map[string]struct {
		do   func(*availability)
		want string // from free, occupied, refusing, forced, dataLoss
	}{
		"says busy":                       {func(a *availability) { a.refused("busy") }, "refusing refusing refusing refusing dataLoss"},
		"data was lost":                   {func(a *availability) { a.onDataLoss() }, "dataLoss dataLoss dataLoss dataLoss dataLoss"},
		"released":                        {func(a *availability) { a.force() }, "forced forced forced forced forced"},
		"another director has it":         {func(a *availability) { a.handedOver() }, "free free free free dataLoss"},
		"idle":                            {func(a *availability) { a.idle() }, "free free free free free"},
		"works at others', no slot left":  {func(a *availability) { a.working(other, true, true) }, "occupied occupied refusing forced dataLoss"},
		"works at others', a slot left":   {func(a *availability) { a.working(other, true, false) }, "free free refusing forced dataLoss"},
		"works at something":              {func(a *availability) { a.working([]string{"something"}, false, true) }, "occupied occupied refusing forced dataLoss"},
		"works, and does not say at what": {func(a *availability) { a.working(nil, false, false) }, "free free refusing forced dataLoss"},
		"works at ours alone":             {func(a *availability) { a.working(nil, true, false) }, "free free free forced free"},
	} {
		for i, want := range strings.Fields(c.want) {
			from := availabilityState(i)
			a := availability{state: from}
			if a.withheld() {
				a.why = "why"
			}
			c.do(&a)
			if names[a.state] != want {
				t.Errorf("%s: %s becomes %s, want %s", event, names[from], names[a.state], want)
			}
			if a.withheld() != (a.why != "") {
				t.Errorf("%s: %s becomes %s with the reason %q", event, names[from], names[a.state], a.why)
			}
		}
	}
}

func TestConversationsAreListedOnceMore(t *testing.T) {
	var c sessionSync
	steps := []struct {
		what string
		do   func()
		due  bool
	}{
		{"known", func() {}, false},
		{"came up", c.request, true},
		{"asked", c.start, false},
		{"came up meanwhile", c.request, false},
		{"answered", c.finished, true},
		{"asked again", c.start, false},
		{"answered again", c.finished, false},
	}
	for _, s := range steps {
		if s.do(); c.due() != s.due {
			t.Errorf("%s: due %v, want %v", s.what, c.due(), s.due)
		}
	}
}

// TestMovedAgentIsGone: regression: its session tasks were resolved at once, as if it had been gone since it
// came up.
func TestMovedAgentIsGone(t *testing.T) {
	known := time.Unix(1_000_000, 0)
	moved := known.Add(time.Hour)
	l := &lane{conn: &conn{base: "http://127.0.0.1:1"}, Lane: execution.NewLane[*run](signalbox.Agent{}, known), probing: execution.NewSignal()}
	l.markHeard(known.Add(time.Second))
	l.change(signalbox.Agent{URL: "http://127.0.0.1:2"}, &conn{base: "http://127.0.0.1:2"}, moved)
	if away := l.Presence.Away(moved.Add(time.Minute)); away != time.Minute {
		t.Errorf("a minute after it moved it has been gone for %s", away)
	}
}
