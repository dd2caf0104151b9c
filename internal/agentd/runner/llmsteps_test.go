package runner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/steplimit"
)

func TestStepLimitFollowsLoad(t *testing.T) {
	load := 0.0
	s := &Steps{load: func() (float64, error) { return load, nil }}
	s.Set(10, 2)
	for _, c := range []struct {
		load float64
		want int
	}{{0, 10}, {1, 10}, {1.25, 8}, {1.5, 6}, {1.99, 2}, {2, 2}, {400, 2}, {0.3, 10}} {
		load = c.load
		if n := s.begin(); n != c.want || s.Told().Limit != n {
			t.Errorf("at a load of %v: %d, want %d", c.load, n, c.want)
		}
	}
	load = 400
	for _, c := range [][3]int{{4, 0, 4}, {0, 0, 10}, {4, 4, 4}, {3, 5, 3}, {4, 1, 1}} {
		s.Set(c[0], c[1])
		if n := s.begin(); n != c[2] {
			t.Errorf("%d to %d: %d", c[0], c[1], n)
		}
	}
	s.load = func() (float64, error) { return 0, errors.New("gone") }
	if n := s.begin(); n != 4 {
		t.Errorf("without a load: %d", n)
	}
	if _, err := newLLM(Options{LLM: LLM{Steps: s}}); err == nil || !strings.Contains(err.Error(), "agent.llm.min_parallel_tool_calls: gone") {
		t.Errorf("an agent that cannot follow the load starts: %v", err)
	}
}

func TestLoadPerCPU(t *testing.T) {
	if load, err := loadPerCPU(); err != nil || load < 0 || load > 1e6 {
		t.Errorf("%v %v", load, err)
	}
}

func TestStepCallOutcomesAreCounted(t *testing.T) {
	s := NewSteps(1, 0)
	l, err := steplimit.New(steplimit.Options{MaxFunc: s.begin, Hooks: s.hooks(), Policy: steplimit.Queue,
		Exempt: steplimit.Named("exempt"), NeedsApproval: steplimit.Named("asks")})
	if err != nil {
		t.Fatal(err)
	}
	calls := []steplimit.Call{{Name: "a"}, {Name: "b"}, {Name: "fails"}, {Name: "exempt"}, {Name: "asks"}}
	run := func(_ context.Context, c steplimit.Call) (steplimit.Answer, error) {
		if c.Name == "fails" {
			return steplimit.Answer{}, errors.New("no")
		}
		return steplimit.Answer{}, nil
	}
	l.Run(t.Context(), 1, calls, run)
	over, end := context.WithCancel(t.Context())
	end()
	l.Run(over, 2, calls[:1], run)
	if got, want := *s.Told(), (api.AgentSteps{Limit: 1, Executed: 3, Failed: 1, NeedsApproval: 1, Aborted: 1, Queued: 2, Exempt: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
