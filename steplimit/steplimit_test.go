package steplimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/steplimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func calls(n int) []steplimit.Call {
	out := make([]steplimit.Call, n)
	for i := range out {
		out[i] = steplimit.Call{ID: fmt.Sprintf("call_%d", i+1), Name: fmt.Sprintf("tool_%d", i+1), Arguments: fmt.Sprintf(`{"n": %d}`, i+1)}
	}
	return out
}

func echo(_ context.Context, c steplimit.Call) (steplimit.Answer, error) {
	return steplimit.Answer{Text: "did " + c.ID}, nil
}

func outcomes(rs []steplimit.Result) string {
	var out []string
	for _, r := range rs {
		out = append(out, string(r.Outcome))
	}
	return strings.Join(out, " ")
}

func TestDefaultIsTen(t *testing.T) {
	rs := newLimiter(t, steplimit.Options{}).Run(t.Context(), 1, calls(11), echo)
	want := strings.Repeat("executed ", 10) + "refused"
	if got := outcomes(rs); got != want {
		t.Errorf("outcomes: %s, want %s", got, want)
	}
}

func TestRefusalHasTheSeedsWordsAndTheRawArguments(t *testing.T) {
	c := steplimit.Call{ID: "b", Name: "literature_search", Arguments: "{ \"z\":1,  \"a\":[ 2 ],\n\"z\":3 } and no JSON"}
	rs := newLimiter(t, steplimit.Options{Max: 1}).Run(t.Context(), 1, []steplimit.Call{{ID: "a", Name: "first"}, c}, echo)
	want := "The tool literature_search with arguments { \"z\":1,  \"a\":[ 2 ],\n\"z\":3 } and no JSON could not be executed due to rate limit. Call it again."
	if rs[1].Text != want || !rs[1].IsError {
		t.Errorf("refusal:\n%s\nwant:\n%s", rs[1].Text, want)
	}
}

func TestLimitBelowOneCountsAsOne(t *testing.T) {
	for _, o := range []steplimit.Options{{Max: -3}, {Max: 5, MaxFunc: func() int { return 0 }}} {
		if got := outcomes(newLimiter(t, o).Run(t.Context(), 1, calls(2), echo)); got != "executed refused" {
			t.Errorf("%+v: %s", o, got)
		}
	}
}

func TestMaxFuncIsReadOnceAStep(t *testing.T) {
	var asked atomic.Int32
	l := newLimiter(t, steplimit.Options{MaxFunc: func() int { return int(asked.Add(1)) }})
	for step := 1; step <= 3; step++ {
		rs := l.Run(t.Context(), step, calls(5), echo)
		if n := strings.Count(outcomes(rs), "executed"); n != step {
			t.Errorf("step %d executed %d, want %d", step, n, step)
		}
	}
	if asked.Load() != 3 {
		t.Errorf("the limit was asked for %d times in 3 steps", asked.Load())
	}
}

// TestProperty6 is the seed's property 6: any set of calls up to the limit runs in
// parallel, and those beyond are queued or rejected.
func TestProperty6(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, n := rapid.IntRange(1, 12).Draw(t, "limit"), rapid.IntRange(0, 30).Draw(t, "calls")
		policy := rapid.SampledFrom([]steplimit.Policy{steplimit.Reject, steplimit.Queue}).Draw(t, "policy")
		l := newLimiter(t, steplimit.Options{Max: limit, Policy: policy})
		var running, most, began atomic.Int32
		side := int32(min(limit, n)) // this many must run concurrently before any may continue
		together := make(chan struct{})
		rs := l.Run(context.Background(), 1, calls(n), func(_ context.Context, c steplimit.Call) (steplimit.Answer, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			if began.Add(1) == side {
				close(together)
			}
			<-together
			return steplimit.Answer{Text: c.ID}, nil
		})
		if int(most.Load()) > limit {
			t.Fatalf("%d at once, limit %d", most.Load(), limit)
		}
		for i, r := range rs {
			want := steplimit.Executed
			if i >= limit && policy == steplimit.Reject {
				want = steplimit.Refused
			}
			if r.Call.ID != fmt.Sprintf("call_%d", i+1) || r.Outcome != want || r.Position != i+1 || r.Limit != limit {
				t.Fatalf("result %d is %+v, want %s", i, r, want)
			}
		}
	})
}

func TestQueuedCallsBeginInTheirOrder(t *testing.T) {
	l := newLimiter(t, steplimit.Options{Max: 1, Policy: steplimit.Queue})
	var mu sync.Mutex
	var order []string
	l.Run(t.Context(), 1, calls(40), func(_ context.Context, c steplimit.Call) (steplimit.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, c.ID)
		return steplimit.Answer{}, nil
	})
	for i, id := range order {
		if id != fmt.Sprintf("call_%d", i+1) {
			t.Fatalf("order: %v", order)
		}
	}
	if len(order) != 40 {
		t.Errorf("%d ran", len(order))
	}
}

func TestExemptCallsNeitherCountNorWait(t *testing.T) {
	for _, policy := range []steplimit.Policy{steplimit.Reject, steplimit.Queue} {
		l := newLimiter(t, steplimit.Options{Max: 1, Policy: policy, Exempt: steplimit.Named("tool_1", "tool_3")})
		all := make(chan struct{}) // closed when the three allowed calls run
		var n atomic.Int32
		rs := l.Run(t.Context(), 1, calls(3), func(context.Context, steplimit.Call) (steplimit.Answer, error) {
			if n.Add(1) == 3 {
				close(all)
			}
			<-all
			return steplimit.Answer{}, nil
		})
		if outcomes(rs) != "executed executed executed" || rs[0].Position != 0 || rs[1].Position != 1 || rs[2].Position != 0 {
			t.Errorf("%s: %s %+v", policy, outcomes(rs), rs)
		}
	}
}

func TestApproval(t *testing.T) {
	need := steplimit.Named("tool_1", "tool_2", "tool_3")
	t.Run("nobody is there", func(t *testing.T) {
		rs := newLimiter(t, steplimit.Options{Max: 1, NeedsApproval: need}).Run(t.Context(), 1, calls(4), echo)
		if outcomes(rs) != "needs_approval needs_approval needs_approval executed" {
			t.Fatal(outcomes(rs))
		}
		if !strings.Contains(rs[0].Text, "tool_1") || !strings.Contains(rs[0].Text, "approval") {
			t.Errorf("text: %s", rs[0].Text)
		}
	})
	t.Run("a person decides", func(t *testing.T) {
		var asked atomic.Int32
		o := steplimit.Options{Max: 1, NeedsApproval: need, Hooks: steplimit.Hooks{Asked: func(steplimit.Call, int) { asked.Add(1) }}}
		o.Approve = func(_ context.Context, c steplimit.Call) (steplimit.Decision, error) {
			switch c.Name {
			case "tool_2":
				return steplimit.Decision{Reason: "not on a Friday"}, nil
			case "tool_3":
				return steplimit.Decision{}, errors.New("the pager is silent")
			}
			return steplimit.Decision{Approved: true}, nil
		}
		rs := newLimiter(t, o).Run(t.Context(), 1, calls(5), echo)
		if outcomes(rs) != "executed denied failed executed refused" {
			t.Fatal(outcomes(rs))
		}
		if !strings.Contains(rs[1].Text, "not on a Friday") || !strings.Contains(rs[2].Text, "the pager is silent") || asked.Load() != 3 {
			t.Errorf("%q %q, asked %d", rs[1].Text, rs[2].Text, asked.Load())
		}
	})
	t.Run("the approved have a line of their own", func(t *testing.T) {
		o := steplimit.Options{Max: 1, NeedsApproval: need}
		o.Approve = func(context.Context, steplimit.Call) (steplimit.Decision, error) {
			return steplimit.Decision{Approved: true}, nil
		}
		var running, most, counted atomic.Int32
		rs := newLimiter(t, o).Run(t.Context(), 1, calls(4), func(_ context.Context, c steplimit.Call) (steplimit.Answer, error) {
			if c.Name == "tool_4" {
				counted.Add(1)
				return steplimit.Answer{}, nil
			}
			most.Store(max(most.Load(), running.Add(1)))
			runtime.Gosched()
			running.Add(-1)
			return steplimit.Answer{}, nil
		})
		if outcomes(rs) != "executed executed executed executed" || most.Load() != 1 || counted.Load() != 1 {
			t.Errorf("%s, %d approved at once", outcomes(rs), most.Load())
		}
	})
}

func TestNoToolTakesTheOthersAlong(t *testing.T) {
	rs := newLimiter(t, steplimit.Options{Max: 2, Policy: steplimit.Queue}).Run(t.Context(), 1, calls(5), func(_ context.Context, c steplimit.Call) (steplimit.Answer, error) {
		switch c.Name {
		case "tool_1":
			panic("secret of the tool")
		case "tool_2":
			runtime.Goexit()
		case "tool_3":
			return steplimit.Answer{Text: "half"}, errors.New("the server is gone")
		case "tool_4":
			return steplimit.Answer{Text: "no such page", IsError: true}, nil
		}
		return steplimit.Answer{Text: "fine"}, nil
	})
	if outcomes(rs) != "failed failed failed executed executed" {
		t.Fatal(outcomes(rs))
	}
	if strings.Contains(rs[0].Text, "secret") || !strings.Contains(rs[0].Err.Error(), "secret of the tool") {
		t.Errorf("a panic is told to the model as %q, to the log as %v", rs[0].Text, rs[0].Err)
	}
	for i, want := range []string{"tool_1 could not be executed", "ended without an answer", "The tool tool_3 could not be executed: the server is gone", "no such page", "fine"} {
		if !strings.Contains(rs[i].Text, want) {
			t.Errorf("result %d: %q, want %q", i, rs[i].Text, want)
		}
	}
}

// TestContextEnds: a call in flight ends by itself. Calls that wait for their turn or
// for approval are answered at once and not executed.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := steplimit.Options{Max: 2, Policy: steplimit.Queue, NeedsApproval: steplimit.Named("tool_5")}
	asked := make(chan struct{})
	o.Approve = func(ctx context.Context, _ steplimit.Call) (steplimit.Decision, error) {
		close(asked)
		<-ctx.Done()
		return steplimit.Decision{}, ctx.Err()
	}
	var began sync.WaitGroup
	began.Add(2)
	go func() { began.Wait(); <-asked; cancel() }()
	rs := newLimiter(t, o).Run(ctx, 1, calls(5), func(ctx context.Context, c steplimit.Call) (steplimit.Answer, error) {
		began.Done()
		<-ctx.Done()
		if c.Name == "tool_1" {
			return steplimit.Answer{Text: "done all the same"}, nil
		}
		return steplimit.Answer{}, ctx.Err()
	})
	if outcomes(rs) != "executed aborted aborted aborted aborted" {
		t.Fatal(outcomes(rs))
	}
	for _, r := range rs[1:] {
		if r.Text != "Tool execution aborted by the user." || !r.IsError || !errors.Is(r.Err, context.Canceled) {
			t.Errorf("%+v", r)
		}
	}
}

func TestContextThatHasEndedRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, policy := range []steplimit.Policy{steplimit.Reject, steplimit.Queue} {
		rs := newLimiter(t, steplimit.Options{Max: 2, Policy: policy}).Run(ctx, 1, calls(4), func(context.Context, steplimit.Call) (steplimit.Answer, error) {
			t.Error("it was executed")
			return steplimit.Answer{}, nil
		})
		if outcomes(rs) != "aborted aborted aborted aborted" {
			t.Error(outcomes(rs))
		}
	}
}

func TestHooksSeeEachCallOnce(t *testing.T) {
	var mu sync.Mutex
	ended, queued := map[string]steplimit.Outcome{}, []string{}
	o := steplimit.Options{Max: 2, Policy: steplimit.Queue, NeedsApproval: steplimit.Named("tool_2")}
	o.Hooks.Ended = func(r steplimit.Result) {
		mu.Lock()
		defer mu.Unlock()
		if ended[r.Call.ID] != "" {
			t.Errorf("%s ended twice", r.Call.ID)
		}
		ended[r.Call.ID] = r.Outcome
	}
	o.Hooks.Queued = func(c steplimit.Call, step, position, limit int) {
		queued = append(queued, fmt.Sprintf("%s %d %d/%d", c.ID, step, position, limit))
	}
	hold := make(chan struct{})
	var n atomic.Int32
	newLimiter(t, o).Run(t.Context(), 7, calls(5), func(context.Context, steplimit.Call) (steplimit.Answer, error) {
		if n.Add(1) == 2 {
			close(hold)
		}
		<-hold
		return steplimit.Answer{}, nil
	})
	if want := []string{"call_4 7 3/2", "call_5 7 4/2"}; !slices.Equal(queued, want) {
		t.Errorf("queued: %v, want %v", queued, want)
	}
	if len(ended) != 5 || ended["call_2"] != steplimit.NeedsApproval || ended["call_5"] != steplimit.Executed {
		t.Errorf("ended: %v", ended)
	}
}

func newLimiter(t interface {
	Helper()
	Fatal(...any)
}, o steplimit.Options) *steplimit.Limiter {
	t.Helper()
	l, err := steplimit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A misspelt policy is an error, and does not silently mean Reject.
func TestUnknownPolicy(t *testing.T) {
	for _, policy := range []steplimit.Policy{"queued", "QUEUE", " reject"} {
		if l, err := steplimit.New(steplimit.Options{Policy: policy}); err == nil || l != nil || !strings.Contains(err.Error(), string(policy)) {
			t.Errorf("policy %q: %v, %v", policy, l, err)
		}
	}
}

// A call with the id of a step that is still known counts in that step (the rule in
// the documentation of Do).
func TestStepIsForgottenWithTheNextNewOne(t *testing.T) {
	steps := newLimiter(t, steplimit.Options{Max: 1}).Steps()
	do := func(id int) steplimit.Outcome {
		return steps.Do(t.Context(), id, steplimit.Call{Name: "x"}, echo).Outcome
	}
	inside, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		steps.Do(t.Context(), 1, steplimit.Call{Name: "x"}, func(context.Context, steplimit.Call) (steplimit.Answer, error) {
			close(inside)
			<-goOn
			return steplimit.Answer{}, nil
		})
	}()
	<-inside
	if got := do(2); got != steplimit.Executed {
		t.Errorf("the first call of step 2: %s", got)
	}
	close(goOn)
	<-ended
	if got := do(1); got != steplimit.Refused {
		t.Errorf("step 1, which is still known: %s", got)
	}
	if got := do(3); got != steplimit.Executed {
		t.Errorf("the first call of step 3: %s", got)
	}
	if got := do(1); got != steplimit.Executed {
		t.Errorf("step 1, which is forgotten: %s", got)
	}
}

// A call with Answer.NotRun has failed, also in the log, and its text is the answer.
func TestWhatCouldNotBeRunHasFailed(t *testing.T) {
	var log strings.Builder
	l := newLimiter(t, steplimit.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r := l.Run(t.Context(), 1, calls(1), func(context.Context, steplimit.Call) (steplimit.Answer, error) {
		return steplimit.Answer{Text: "There is no such tool.", IsError: true, NotRun: true}, nil
	})[0]
	if r.Outcome != steplimit.Failed || r.Text != "There is no such tool." || strings.Contains(log.String(), "completed") || !strings.Contains(log.String(), "Tool execution failed") {
		t.Errorf("%+v\n%s", r, log.String())
	}
}
