package engine_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// service is a program whose token has these rights.
func service(name string, scopes ...signalbox.Scope) signalbox.Principal {
	return signalbox.Principal{Kind: signalbox.PrincipalService, ID: name, Scopes: scopes}
}

// TestSubmitAloneReadsNothingOfOthers: retrying a task or continuing a conversation reveals its content.
func TestSubmitAloneReadsNothingOfOthers(t *testing.T) {
	b := newFixture(t)
	one := b.talker("one", 1)
	owner, blind := service("owner", signalbox.ScopeSubmit), service("blind", signalbox.ScopeSubmit)
	reader := service("reader", signalbox.ScopeSubmit, signalbox.ScopeRead)
	say := func(by signalbox.Principal, session string) engine.NewTask {
		n := chat("one", "what was said?")
		n.By, n.SessionID = by, session
		return n
	}
	b.submit(say(owner, "talk"))
	b.refusedAs(signalbox.CodeForbidden, say(blind, "talk")) // it waits for its first turn
	first := b.finish(b.work(one), signalbox.ReasonCompleted)
	b.refusedAs(signalbox.CodeForbidden, say(blind, "talk"))
	b.refusedAs(signalbox.CodeForbidden, engine.NewTask{Prompt: "x", SessionID: "talk", By: blind})
	for _, by := range []signalbox.Principal{owner, reader} {
		if c := b.submit(say(by, "talk")); c.SessionID != "talk" {
			t.Errorf("%s goes on in %q", by, c.SessionID)
		}
		b.finish(b.work(one), signalbox.ReasonCompleted)
	}

	b.must(b.current("talk"))
	if c := b.submit(say(blind, "")); c.SessionID == "talk" {
		t.Error("a chat that names no conversation goes on in somebody else's")
	}
	b.finish(b.work(one), signalbox.ReasonCompleted)

	_, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{By: blind})
	wantCode(t, err, signalbox.CodeForbidden, "")
	for _, by := range []signalbox.Principal{owner, reader} {
		if _, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{By: by}); err != nil {
			t.Errorf("%s: %v", by, err)
		}
	}
}

// current makes a conversation its agent's current one.
func (b *fixture) current(id string) error {
	_, err := b.RestoreSession(b.t.Context(), id, "test")
	return err
}
