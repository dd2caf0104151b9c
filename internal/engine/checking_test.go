package engine_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Whether an admin gave the checks is stored with the task, for its agent; the same for a retried task.
func TestChecksOfAdminsAreMarked(t *testing.T) {
	b := newFixture(t)
	b.agent("coder", "demo", 1)
	caller := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "u", Scopes: []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeRead}}
	admin := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "u", Scopes: []signalbox.Scope{signalbox.ScopeAdmin, signalbox.ScopeSubmit, signalbox.ScopeRead}}
	check := signalbox.Checking{Checks: []signalbox.Check{{Name: "test", Run: "make test"}}}
	none := 0
	by := func(id string) signalbox.EnvBy {
		r, err := b.Read().Request(t.Context(), id)
		b.must(err)
		return r.EnvBy
	}
	for _, c := range []struct {
		n    engine.NewTask
		want signalbox.EnvBy
	}{
		{engine.NewTask{By: caller, Checking: check}, signalbox.EnvByCaller},
		{engine.NewTask{By: admin, Checking: check}, ""},
		{engine.NewTask{By: caller, Checking: signalbox.Checking{Retries: &none}}, ""},
	} {
		if got := by(b.submit(c.n).ID); got != c.want {
			t.Errorf("%+v: %q, want %q", c.n.Checking, got, c.want)
		}
	}
	first := b.submit(engine.NewTask{By: admin, Checking: check})
	_, err := b.Cancel(t.Context(), first.ID, "u")
	b.must(err)
	again, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{By: caller})
	b.must(err)
	r, err := b.Read().Request(t.Context(), again.Task.ID)
	b.must(err)
	if r.EnvBy != signalbox.EnvByCaller || len(r.Checking.Checks) != 1 || r.Checking.Checks[0] != check.Checks[0] {
		t.Errorf("a retry by another: %+v, by %q", r.Checking, r.EnvBy)
	}
	_, err = b.Submit(t.Context(), engine.NewTask{Prompt: "p", By: admin, Checking: signalbox.Checking{Checks: []signalbox.Check{{Name: "a b", Run: "x"}}}})
	if signalbox.CodeOf(err) != signalbox.CodeValidation || !strings.Contains(err.Error(), "name of a check") {
		t.Errorf("%v", err)
	}
}
