package engine_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// A caller may submit so much per minute and no more. Others, admins and replays are not delayed.
func TestSubmitRateIsLimited(t *testing.T) {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := engine.New(memory.New(memory.Options{}), engine.Options{
		MaxSize: 1000, SubmitTasks: 60, SubmitBytes: 1000, Sealer: sealer, Now: func() time.Time { return now },
	})
	submit := func(who, key, prompt string, scopes ...signalbox.Scope) (engine.Receipt, error) {
		return e.Submit(context.Background(), engine.NewTask{
			Prompt: prompt, Source: signalbox.SourceAPI, IdempotencyKey: key,
			By: signalbox.Principal{Kind: signalbox.PrincipalService, ID: who, Scopes: append(scopes, signalbox.ScopeSubmit)},
		})
	}
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	limited := func(what string, err error, wait time.Duration) {
		t.Helper()
		var e *signalbox.Error
		if signalbox.CodeOf(err) != signalbox.CodeRateLimited || !errors.As(err, &e) || e.RetryAfter != wait {
			t.Fatalf("%s: %v (%+v), want rate_limited and %s", what, err, e, wait)
		}
	}
	for i := range 60 {
		_, err := submit("ci", map[bool]string{true: "first"}[i == 0], "x")
		ok("within the rate", err)
	}
	_, err = submit("ci", "", "x")
	limited("the next one", err, 2*time.Second)
	_, err = submit("ci", "another", "x")
	limited("one with a key of its own", err, 2*time.Second)
	got, err := submit("ci", "first", "x")
	ok("a replay", err)
	if !got.Replayed {
		t.Error("it was stored twice")
	}
	_, err = submit("other", "", "x")
	ok("another caller", err)
	for range 100 {
		_, err = submit("root", "", "x", signalbox.ScopeAdmin)
		ok("an admin", err)
	}
	now = now.Add(time.Second) // 1/60 of a minute
	_, err = submit("ci", "", "x")
	ok("a second later", err)
	_, err = submit("ci", "", "x")
	limited("and one more", err, 2*time.Second)

	_, err = submit("large", "", strings.Repeat("x", 5000))
	ok("what is larger than the bound, once", err)
	_, err = submit("large", "", "x")
	limited("the next after that", err, 241*time.Second)

	// The firings of a schedule do not count as calls of its owner.
	for range 100 {
		_, err = e.Submit(context.Background(), engine.NewTask{
			Prompt: "x", Source: signalbox.SourceScheduler, Scheduled: true,
			By: signalbox.Principal{Kind: signalbox.PrincipalService, ID: "ci", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}},
		})
		ok("a firing", err)
	}

	// A used-up limit is not forgotten among many other callers.
	now = now.Add(61 * time.Second)
	for i := range 1100 {
		if _, err := submit("one-of-many-"+strconv.Itoa(i), "", "x"); err != nil && signalbox.CodeOf(err) != signalbox.CodeQueueFull {
			t.Fatal(err)
		}
	}
	_, err = submit("large", "", "x")
	limited("it still owes", err, 180*time.Second)
}
