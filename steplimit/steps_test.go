package steplimit_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/steplimit"
)

// TestSteps is the wrapper of the seed: the SDK calls the tools one by one, and the
// number of messages identifies the step.
func TestSteps(t *testing.T) {
	steps := newLimiter(t, steplimit.Options{Max: 3}).Steps()
	for _, messages := range []int{2, 9, 16} {
		for i, c := range calls(5) {
			r := steps.Do(t.Context(), messages, c, echo)
			want := steplimit.Executed
			if i >= 3 {
				want = steplimit.Refused
			}
			if r.Outcome != want || r.Position != i+1 || r.Step != messages {
				t.Errorf("step %d, call %d: %+v", messages, i+1, r)
			}
		}
	}
}

func TestStepsSideBySide(t *testing.T) {
	steps := newLimiter(t, steplimit.Options{Max: 4, Policy: steplimit.Queue}).Steps()
	var all sync.WaitGroup
	var mu sync.Mutex
	now, most, ran := 0, 0, 0
	for _, c := range calls(30) {
		all.Go(func() {
			steps.Do(t.Context(), 1, c, func(context.Context, steplimit.Call) (steplimit.Answer, error) {
				mu.Lock()
				now, ran = now+1, ran+1
				most = max(most, now)
				mu.Unlock()
				mu.Lock()
				now--
				mu.Unlock()
				return steplimit.Answer{}, nil
			})
		})
	}
	all.Wait()
	if most > 4 || ran != 30 {
		t.Errorf("%d at once, %d ran", most, ran)
	}
}

// TestStepInFlightIsNotForgotten: a late call of the previous step still counts
// in that step while one of its calls is in flight.
func TestStepInFlightIsNotForgotten(t *testing.T) {
	steps := newLimiter(t, steplimit.Options{Max: 1}).Steps()
	c := calls(3)
	inside, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		steps.Do(t.Context(), 1, c[0], func(context.Context, steplimit.Call) (steplimit.Answer, error) {
			close(inside)
			<-leave
			return steplimit.Answer{}, nil
		})
	}()
	<-inside
	if r := steps.Do(t.Context(), 2, c[1], echo); r.Outcome != steplimit.Executed {
		t.Errorf("the next step has a count of its own: %+v", r)
	}
	if r := steps.Do(t.Context(), 1, c[2], echo); r.Outcome != steplimit.Refused {
		t.Errorf("the first step still has its count: %+v", r)
	}
	close(leave)
	<-done
}

// TestLogLines compares the log lines with the seed's, word for word.
func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	h := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}})
	o := steplimit.Options{Max: 3, Logger: slog.New(h), Exempt: steplimit.Named("other")}
	list := []steplimit.Call{{ID: "call_abc123", Name: "web_search", Arguments: `{"password": 1}`}, {ID: "x", Name: "a"}, {ID: "y", Name: "b"},
		{ID: "call_def456", Name: "literature_search"}, {ID: "z", Name: "other"}}
	newLimiter(t, o).Run(t.Context(), 5, list, echo)
	for _, want := range []string{
		`[streamChat] Step 5, Tool 1/3: web_search (ID: call_abc123)`,
		`[streamChat] Executing tool: web_search (ID: call_abc123)`,
		`[streamChat] Tool execution completed: web_search (ID: call_abc123)`,
		`[streamChat] Step 5, Tool 4/3: literature_search (ID: call_def456)`,
		`[streamChat] Tool call literature_search (ID: call_def456) exceeds parallel limit (3). Returning rate limit error.`,
		`[streamChat] Executing tool: other (ID: z)`,
	} {
		if !strings.Contains(out.String(), `msg="`+want+`"`+"\n") {
			t.Errorf("missing %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "password") {
		t.Error("arguments were logged")
	}
	out.Reset()
	o.Prefix = "[agent]"
	newLimiter(t, o).Run(t.Context(), 1, list[:1], echo)
	if !strings.HasPrefix(out.String(), `msg="[agent] Step 1, Tool 1/3`) {
		t.Errorf("prefix: %s", out.String())
	}
}

// TestAbandonedCallPassesItsTurnOn: a call whose turn comes as its context ends passes the
// turn on, so that the next call does not wait for ever.
func TestAbandonedCallPassesItsTurnOn(t *testing.T) {
	queued := make(chan struct{}, 2)
	o := steplimit.Options{Max: 1, Policy: steplimit.Queue}
	o.Hooks.Queued = func(steplimit.Call, int, int, int) { queued <- struct{}{} }
	steps := newLimiter(t, o).Steps()
	c := calls(3)
	for step := range 300 {
		inTime, done := context.WithTimeout(t.Context(), time.Minute)
		givenUp, giveUp := context.WithCancel(inTime)
		inside, leave := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			steps.Do(inTime, step, c[0], func(context.Context, steplimit.Call) (steplimit.Answer, error) {
				close(inside)
				<-leave
				giveUp()
				return steplimit.Answer{}, nil
			})
		})
		<-inside
		all.Go(func() { steps.Do(givenUp, step, c[1], echo) })
		<-queued
		all.Go(func() {
			if r := steps.Do(inTime, step, c[2], echo); r.Outcome != steplimit.Executed {
				t.Errorf("the next one: %+v", r)
			}
		})
		<-queued
		close(leave)
		all.Wait()
		done()
		if t.Failed() {
			return
		}
	}
}
