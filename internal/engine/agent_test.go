package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

func TestPutAgentRefuses(t *testing.T) {
	b := newFixture(t)
	good := signalbox.Agent{Name: "coder", Kind: "demo", URL: "http://127.0.0.1:9000"}
	for field, changes := range map[string][]func(*signalbox.Agent){
		"name": {func(a *signalbox.Agent) { a.Name = "" }, func(a *signalbox.Agent) { a.Name = "../x" }, func(a *signalbox.Agent) { a.Name = strings.Repeat("a", 65) }},
		"kind": {func(a *signalbox.Agent) { a.Kind = "" }, func(a *signalbox.Agent) { a.Kind = "a:b" }},
		"url": {func(a *signalbox.Agent) { a.URL = "127.0.0.1:9000" }, func(a *signalbox.Agent) { a.URL = "ftp://h" }, func(a *signalbox.Agent) { a.URL = "http://u:p@h" },
			func(a *signalbox.Agent) { a.URL = "http://h?x=1" }, func(a *signalbox.Agent) { a.URL = "http://h:99999" }, func(a *signalbox.Agent) { a.URL = "http://" }, func(a *signalbox.Agent) { a.URL = "" }},
		"slots":    {func(a *signalbox.Agent) { a.Slots = -1 }, func(a *signalbox.Agent) { a.Slots = signalbox.MaxAgentSlots + 1 }},
		"version":  {func(a *signalbox.Agent) { a.Version = "a\nb" }, func(a *signalbox.Agent) { a.Version = strings.Repeat("a", 300) }},
		"work_dir": {func(a *signalbox.Agent) { a.WorkDir = "\x1b]0;x" }},
	} {
		for _, change := range changes {
			a := good
			change(&a)
			_, err := b.PutAgent(t.Context(), a, "")
			wantCode(t, err, signalbox.CodeValidation, field)
		}
	}
	_, err := b.PutAgent(t.Context(), good, "a\r\nX-Forged: 1")
	wantCode(t, err, signalbox.CodeValidation, "token")
}

func TestAgentsAndTheirTokens(t *testing.T) {
	b := newFixture(t)
	a := signalbox.Agent{Name: "coder", Kind: "demo", URL: "http://127.0.0.1:9000"}
	first, err := b.PutAgent(t.Context(), a, "agent-s3cret")
	b.must(err)
	if first.Slots != 1 || strings.Contains(string(first.SealedToken), "s3cret") {
		t.Errorf("%+v", first)
	}
	if token, err := b.AgentToken(first); err != nil || token != "agent-s3cret" {
		t.Errorf("%q, %v", token, err)
	}
	entries := b.journal()
	b.pass(time.Hour)
	again, err := b.PutAgent(t.Context(), a, "agent-s3cret")
	b.must(err)
	if !again.CreatedAt.Equal(first.CreatedAt) || b.journal() != entries {
		t.Errorf("registering again changed the row: %+v", again)
	}
	changed, err := b.PutAgent(t.Context(), a, "other")
	b.must(err)
	if token, _ := b.AgentToken(changed); token != "other" || b.journal() != entries+1 {
		t.Errorf("%q", token)
	}
	plain, err := b.PutAgent(t.Context(), a, "")
	b.must(err)
	if token, err := b.AgentToken(plain); err != nil || token != "" {
		t.Errorf("%q, %v", token, err)
	}
	other := engine.New(b.store, engine.Options{Sealer: otherSealer(t)})
	if _, err := other.AgentToken(first); err == nil || !strings.Contains(err.Error(), "register it again") {
		t.Errorf("%v", err)
	}
}

func (b *fixture) journal() int64 {
	b.t.Helper()
	_, newest, err := b.Read().JournalRange(b.t.Context())
	b.must(err)
	return newest
}

func TestRemoveAgent(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	b.submit(engine.NewTask{})
	waiting := b.submit(engine.NewTask{Agent: "coder"})
	task := b.work(a)
	wantCode(t, b.RemoveAgent(t.Context(), "coder", "me"), signalbox.CodeConflict, "")
	b.finish(task, signalbox.ReasonCompleted)
	b.must(b.RemoveAgent(t.Context(), "coder", "me"))
	wantCode(t, b.RemoveAgent(t.Context(), "coder", "me"), signalbox.CodeNotFound, "agent")
	if b.task(waiting.ID).State != signalbox.Pending {
		t.Error("a task ended with its agent's row")
	}
}

// Observers get each durable change once, and the log has the seed's lines.
func TestObserversAndLog(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	signs, stop := b.WatchJournal()
	defer stop()
	b.submit(engine.NewTask{Source: signalbox.SourceScheduler})
	select {
	case <-signs:
	default:
		t.Error("no sign that the journal grew")
	}
	_, err := b.Busy(t.Context(), b.claim(a).Task, "agent busy")
	b.must(err)
	b.finish(b.work(a), signalbox.ReasonCompleted)
	var kinds []string
	for _, s := range b.seen {
		kinds = append(kinds, string(s.Kind))
	}
	if got := strings.Join(kinds, " "); got != "agent_added submit claim busy claim accept finish" {
		t.Errorf("%s", got)
	}
	for _, want := range []string{
		"queue=task_added queue_id=queue-", "depth=1 source=scheduler", "queue=dispatch queue_id=", "agent=http://127.0.0.1:9000",
		`queue=dispatch_failed`, `error="agent busy" attempt=1/3`, "queue=dispatch_success", "task_id=task-1", "queue=task_ended", "reason=completed",
	} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("no %s in the log:\n%s", want, b.log)
		}
	}
}

// The log has only the beginning of a program's output.
func TestLogTruncatesEndMessage(t *testing.T) {
	b := newFixture(t)
	b.submit(engine.NewTask{})
	task := b.work(b.agent("coder", "demo", 1))
	_, err := b.Finish(t.Context(), task, engine.Outcome{Reason: signalbox.ReasonExitNonzero, Message: strings.Repeat("ä", 1<<15)})
	b.must(err)
	log := b.log.String()
	if n := strings.Count(log, "ä"); n != 512 || !strings.Contains(log, "ä …") {
		t.Errorf("%d characters of it: %.3000s", n, log)
	}
}

// Two engines share a store: each task goes to one of them, and a change made from a stale row is retried.
func TestTwoEnginesShareAStore(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	other := engine.New(b.store, engine.Options{Sealer: newSealer(t), Now: b.clock})
	b.submit(engine.NewTask{})
	c := b.claim(a)
	if _, found, err := other.Claim(t.Context(), a, 0); found || err != nil {
		t.Fatalf("the task was claimed twice, %v", err)
	}
	_, err := other.Cancel(t.Context(), c.Task.ID, "another")
	b.must(err)
	got, err := b.Accept(t.Context(), c.Task, "t", "") // from the old row
	b.must(err)
	if got.State != signalbox.Cancelling {
		t.Errorf("the cancel was overwritten: %s", got.State)
	}
}
