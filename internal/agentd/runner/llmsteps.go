package runner

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// Steps is the limit of the steps of an agent of kind llm, and counts what
// became of their tool calls. The limit may change while runs are under way: a
// step keeps the one with which it began.
type Steps struct {
	load func() (float64, error)

	mu          sync.Mutex
	most, least int
	told        api.AgentSteps
}

// NewSteps returns a limit of most calls a step; 0 is the default. Where least is
// more than 0, the limit falls to it as the load of the machine rises.
func NewSteps(most, least int) *Steps {
	s := &Steps{load: loadPerCPU}
	s.Set(most, least)
	return s
}

// Set changes the limit of the steps that begin from now on.
func (s *Steps) Set(most, least int) {
	if most == 0 {
		most = steplimit.DefaultMax
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.least = most, least
	s.told.Limit = s.now()
}

// check reports whether the limit can follow the load, where it is to.
func (s *Steps) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.least <= 0 {
		return nil
	}
	if _, err := s.load(); err != nil {
		return fmt.Errorf("agent.llm.min_parallel_tool_calls: %w", err)
	}
	return nil
}

// begin is the limit of a step that begins now.
func (s *Steps) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told.Limit = s.now()
	return s.told.Limit
}

// now is the limit by the load. It needs mu.
func (s *Steps) now() int {
	if s.least <= 0 || s.least >= s.most {
		return s.most
	}
	load, err := s.load()
	if err != nil { // it was known when the agent started
		return s.most
	}
	return byLoad(s.most, s.least, load)
}

// byLoad is most up to a load of 1 for each CPU, least from 2 on, and in between
// in proportion.
func byLoad(most, least int, load float64) int {
	over := min(max(load-1, 0), 1)
	return most - int(math.Round(over*float64(most-least)))
}

// loadPerCPU is how many programs ran or wanted to in the last minute, for each
// CPU that this process may use.
func loadPerCPU() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("the load of this machine is not known: %w", err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("the load of this machine is not known: /proc/loadavg says %q", clip(string(text)))
	}
	return load / float64(runtime.GOMAXPROCS(0)), nil
}

// hooks count for Told.
func (s *Steps) hooks() steplimit.Hooks {
	return steplimit.Hooks{
		Queued: func(steplimit.Call, int, int, int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told.Queued++
		},
		Ended: func(r steplimit.Result) {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch r.Outcome {
			case steplimit.Executed:
				s.told.Executed++
			case steplimit.Failed:
				s.told.Failed++
			case steplimit.Refused:
				s.told.Refused++
			case steplimit.NeedsApproval, steplimit.Denied:
				s.told.NeedsApproval++
			case steplimit.Aborted:
				s.told.Aborted++
			}
			if r.Exempt {
				s.told.Exempt++
			}
		},
	}
}

// Told is what the agent tells of its steps; nil where it has none.
func (s *Steps) Told() *api.AgentSteps {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	return &told
}
