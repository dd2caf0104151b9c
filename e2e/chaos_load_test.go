package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// The load in the broken networks of chaos_test.go.

// submitting submits tasks through the proxies, and cancels some at the other
// director.
func (s *storm) submitting(who int) {
	for i := 0; s.room(&s.over, 30); i++ {
		sleep := "20ms"
		if i%5 == 3 {
			sleep = "300ms" // so that running tasks have output
		}
		one := sent{onLost: []string{"requeue", "fail"}[i%2], cancel: i%7 == 5}
		one, ok := s.submitOne(s.through[who%2], one, fmt.Sprintf("sleep %s: task %d of %d", sleep, i, who))
		if !ok {
			return
		}
		if one.cancel {
			s.cancelling(one.id, s.through[(who+1)%2])
		}
	}
}

// cancelling retries a cancel until there is an answer.
func (s *storm) cancelling(id string, by *client.Client) {
	var err error
	testkit.Within(2*long, func() bool {
		_, err = by.Cancel(s.t.Context(), id)
		return !awayFor(err)
	})
	if err != nil && client.Code(err) != string(signalbox.CodeAlreadyEnded) {
		s.t.Errorf("cancel %s: %v", id, err)
	}
}

// reading asks both directors for the output of running tasks: one of them
// asks the other.
func (s *storm) reading() {
	for !s.over.Load() && !s.t.Failed() {
		time.Sleep(15 * time.Millisecond)
		events := s.j.all()
		at := len(events) - 1
		for at >= 0 && events[at].Kind != "accept" {
			at--
		}
		if at < 0 {
			continue
		}
		var both sync.WaitGroup
		for _, c := range s.past {
			both.Go(func() {
				if _, err := c.Output(s.t.Context(), events[at].QueueID, 0); err == nil {
					s.read.Add(1)
				}
			})
		}
		both.Wait()
	}
}

// workbench is a tool that records when each call began and ended.
type workbench struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string]*toolCall
}

// toolCall is a call of the tool.
type toolCall struct {
	starts       int
	began, ended time.Time // at the tool
	answered     time.Time // at its caller
	failed       bool
}

func newWorkbench(t *testing.T) *workbench {
	s := &workbench{calls: map[string]*toolCall{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ ID string }
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &asked)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest) // half a request: it did not begin
			return
		}
		call := s.call(asked.ID, func(c *toolCall) { c.starts++; c.began = time.Now() })
		select {
		case <-time.After(10 * time.Millisecond):
		case <-r.Context().Done():
		}
		s.mu.Lock()
		call.ended = time.Now()
		s.mu.Unlock()
		_, _ = io.WriteString(w, `{"did": "`+asked.ID+`"}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *workbench) call(id string, change func(*toolCall)) *toolCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[id]
	if c == nil {
		c = &toolCall{}
		s.calls[id] = c
	}
	change(c)
	return c
}

// calling calls the tool repeatedly, alternating between the directors.
func (s *storm) calling(who int) {
	for n := 0; !s.over.Load() && !s.t.Failed(); n++ {
		id := fmt.Sprintf("call %d of %d", n, who)
		arguments, err := json.Marshal(object{"id": id})
		if err != nil {
			s.t.Error(err)
			return
		}
		got, err := s.past[n%2].CallTool(s.ctx(), "rest__work", api.ToolCall{Arguments: arguments}, client.ToolOptions{})
		s.bench.call(id, func(c *toolCall) { c.answered, c.failed = time.Now(), err != nil || got.IsError })
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// wantCapacity: each call reached the tool at most once, a successful one
// exactly once, and the tool never ran more than two calls at the same time.
// Calls that their gateway had given up do not count, because it cannot stop
// the tool.
func (s *storm) wantCapacity() {
	s.t.Helper()
	s.bench.mu.Lock()
	defer s.bench.mu.Unlock()
	var list []*toolCall
	failed := 0
	for id, c := range s.bench.calls {
		if c.starts > 1 || c.starts == 0 && !c.failed {
			s.t.Errorf("%s: it reached the tool %d times, failed: %v", id, c.starts, c.failed)
		}
		if c.failed {
			failed++
		} else if c.starts == 1 {
			list = append(list, c)
		}
	}
	most := mostAtOnce(list)
	s.t.Logf("%d tool calls, %d of them failed, at most %d at once", len(s.bench.calls), failed, most)
	if most > 2 {
		s.t.Errorf("the tool had %d calls at once, and its queue lets 2 through", most)
	}
	if len(list) < 20 || failed == 0 {
		s.t.Errorf("%d calls succeeded, %d failed: so few show little", len(list), failed)
	}
}

// mostAtOnce is the maximum number of concurrent calls.
func mostAtOnce(calls []*toolCall) int {
	type step struct {
		at   time.Time
		more int
	}
	var steps []step
	for _, c := range calls {
		steps = append(steps, step{c.began, 1}, step{c.ended, -1})
	}
	slices.SortFunc(steps, func(a, b step) int {
		if n := a.at.Compare(b.at); n != 0 {
			return n
		}
		return a.more - b.more
	})
	most, now := 0, 0
	for _, s := range steps {
		now += s.more
		most = max(most, now)
	}
	return most
}

// wantCancels: cancelled tasks were cancelled or had ended before.
func (s *storm) wantCancels(ended map[string]api.Task) {
	s.t.Helper()
	asked, done := 0, 0
	for _, one := range s.tasks {
		if one.cancel {
			asked++
		}
		if ended[one.id].State == "cancelled" {
			done++
			if !one.cancel {
				s.t.Errorf("%s was cancelled without a request", one.id)
			}
		}
	}
	s.t.Logf("%d cancels, %d tasks cancelled", asked, done)
	if done == 0 {
		s.t.Error("no cancel came in time: that shows little")
	}
}

// The checks detect planted faults.
func TestTheChecksOfTheStorm(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for want, calls := range map[int][]*toolCall{
		0: nil,
		1: {{began: at(1), ended: at(2)}, {began: at(2), ended: at(3)}},
		2: {{began: at(1), ended: at(4)}, {began: at(2), ended: at(3)}, {began: at(3), ended: at(5)}},
		3: {{began: at(1), ended: at(4)}, {began: at(2), ended: at(4)}, {began: at(3), ended: at(5)}},
	} {
		if got := mostAtOnce(calls); got != want {
			t.Errorf("%d at once, want %d", got, want)
		}
	}
}
