package storetest

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func valueRules() []rule {
	return []rule{
		{"a prompt and an output of 1 MiB come back whole", valuesLarge},
		{"hostile strings come back byte for byte", valuesHostile},
		{"hostile strings match only what they name", valuesHostileLookups},
		{"times come back to the millisecond, in UTC", valuesTimes},
		{"numbers come back at their limits", valuesNumbers},
		{"absent and empty values are distinct", valuesAbsent},
		{"the store shares no memory with its callers", valuesNoAlias},
	}
}

// hostile returns strings that break stores that concatenate, count or re-encode them.
func hostile() []string {
	return []string{
		"'; DROP TABLE tasks; --", `"quoted" \ and 'quoted'`, "nul\x00in the middle", "\x00", "bad utf-8 \xff\xfe\xc3(", "\xed\xa0\x80",
		"emoji 🚂🚦 and combining é", "‮right to left‬", "line\nline\r\n\ttab", "\x1b[31mred\x1b[0m", "%s %d ${HOME} $(id)",
		"{\"json\":[1,2]}", "\ufeffbom", " leading and trailing ", "0", "null", "undefined", "*", "?", "{tag}", strings.Repeat("x", 1000),
	}
}

func valuesLarge(b *fixture) {
	prompt := strings.Repeat("0123456789abcdef", 1<<16)
	t := b.submit(func(s *store.Submission) { s.Request.Prompt = prompt })
	got, err := b.Claim(b.ctx, b.offer("a"))
	b.must(err)
	if got.Request.Prompt != prompt {
		b.Fatalf("the claim has a prompt of %d bytes", len(got.Request.Prompt))
	}
	output := strings.Repeat("fedcba9876543210", 1<<16)
	b.happen(t.ID, signalbox.Event{
		Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: output, Tail: output[:signalbox.TailBytes]},
	})
	result, err := b.Result(b.ctx, t.ID)
	b.must(err)
	if result.Output != output || len(result.Tail) != signalbox.TailBytes {
		b.Fatalf("the result has an output of %d bytes", len(result.Output))
	}
}

func valuesHostile(b *fixture) {
	for _, h := range hostile() {
		s := b.submission(keyed(h, h), withEnv(h), inQueue("agent:a"))
		s.Task.SourceJob, s.Task.Preview, s.Task.RetryOf, s.Task.Message = h, h, h, h
		s.Task.Owner, s.Task.OwnerEmail, s.Task.ParentID, s.Task.Mode = h, h, h, signalbox.Mode(h)
		s.Request.Prompt, s.Request.Model, s.Request.Tier, s.Request.Project = h, h, h, &signalbox.Project{Name: h, Path: h}
		s.Request.AllowedTools, s.Request.SystemPrompt = []string{h, h}, h
		s.Task.Tool, s.Request.Arguments, s.Request.Metadata, s.Request.TimeoutMS = h, json.RawMessage(h), json.RawMessage(h), math.MaxInt64
		s.Request.Trace = h
		_, err := b.Submit(b.ctx, s)
		b.must(err)
		claimed, err := b.Claim(b.ctx, b.offer("a"))
		b.must(err)
		b.same("request", claimed.Request, s.Request)
		b.same("key and job", [2]string{claimed.Task.IdempotencyKey, claimed.Task.SourceJob}, [2]string{h, h})
		c := b.change(claimed.Task, signalbox.Event{
			Kind: signalbox.EventFinish, Reason: signalbox.ReasonAgentError, Message: h, TaskID: h, By: h,
			Result: &signalbox.Result{Output: h, Tail: h, ErrorType: h, Answer: h},
		})
		ended, err := b.Apply(b.ctx, c, b.now)
		b.must(err)
		b.same("owner", [4]string{ended.Owner, ended.OwnerEmail, ended.ParentID, ended.Tool}, [4]string{h, h, h, h})
		b.same("message", [3]string{ended.Message, ended.TaskID, ended.Preview}, [3]string{h, h, h})
		b.same("task", b.task(s.Task.ID), ended)
		result, err := b.Result(b.ctx, s.Task.ID)
		b.must(err)
		b.same("result", result, *c.Result)
		entries := b.journal()
		last := entries[len(entries)-1]
		b.same("entry", [3]string{last.Message, last.By, last.Owner}, [3]string{h, h, h})
	}
}

func valuesHostileLookups(b *fixture) {
	plain := b.submit(keyed("key", "hash"))
	b.run("a")
	for _, h := range hostile() {
		_, err := b.Task(b.ctx, h)
		b.refused(err, signalbox.CodeNotFound)
		_, err = b.Session(b.ctx, h)
		b.refused(err, signalbox.CodeNotFound)
		b.refused(b.remove(h), signalbox.CodeNotFound)
		b.same("waiting", len(b.waiting(h, store.Cursor{}, 10)), 0)
		b.same("history", len(b.history(store.HistoryQuery{Agent: h, Limit: 10})), 0)
		b.same("was paused", b.resume(h), false)
		b.noClaim(store.ClaimRequest{Agent: h, Slots: 1, Queues: []string{h}, Now: b.now, Expires: b.now})
		b.pause(signalbox.Pause{Queue: h, Reason: h, By: h})
		b.same("was paused", b.resume(h), true)
		a := anAgent("x" + h)
		a.URL, a.SealedToken, a.WorkDir = h, []byte(h), h
		b.put(a)
		b.same("agent", b.agents(), []signalbox.Agent{a})
		b.must(b.remove(a.Name))
	}
	b.task(plain.ID)
}

func valuesTimes(b *fixture) {
	at := time.Date(2031, 12, 31, 23, 59, 59, 999e6, time.UTC)
	t := b.submit(notBefore(at), waitUntil(at.Add(time.Millisecond)))
	b.pass(time.Millisecond)
	got := b.task(t.ID)
	b.same("times", []time.Time{got.NotBefore, got.WaitUntil, got.CreatedAt}, []time.Time{at, at.Add(time.Millisecond), start})
	for _, v := range []time.Time{got.NotBefore, got.CreatedAt, got.EnqueuedAt, b.journal()[0].At} {
		if v.Location() != time.UTC {
			b.Fatalf("%v is not in UTC", v)
		}
	}
	for what, v := range map[string]time.Time{"dispatched": got.DispatchedAt, "started": got.StartedAt, "ended": got.EndedAt} {
		if !v.IsZero() {
			b.Fatalf("%s is %v, want the zero time", what, v)
		}
	}
}

func valuesNumbers(b *fixture) {
	s := b.submission()
	s.Task.Priority, s.Task.Bias = signalbox.MinPriority, -1000*time.Hour
	s.Task.MaxAttempts, s.Request.TimeoutSeconds = math.MaxInt32, math.MaxInt32
	b.must(second(b.Submit(b.ctx, s)))
	t := b.claim("a")
	b.same("numbers", []int{t.Priority, t.MaxAttempts, int(t.Bias / time.Hour)}, []int{signalbox.MinPriority, math.MaxInt32, -1000})
	code := math.MinInt32
	want := signalbox.Result{
		ExitCode: &code, TailSeq: math.MaxInt64, TailLine: math.MaxInt64, InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostUSD: 0.1 + 0.2,
		DurationSeconds: math.SmallestNonzeroFloat64, ToolCount: math.MaxInt64,
		Checked: &signalbox.Checked{
			State: signalbox.CheckFailed, Rounds: math.MaxInt, Message: "a\x00",
			Results: []signalbox.CheckResult{{Name: "b", State: signalbox.CheckPassed, ExitCode: &code, Seconds: 0.1 + 0.2, Output: "c\xff\n"}, {}},
		},
		Changes: &signalbox.Changes{
			Workspace: "worktree", Dir: "/src/\xff", Commits: math.MaxInt, FilesChanged: 2, Insertions: math.MaxInt64, Patch: "a\x00\n", PatchBytes: math.MaxInt64,
			Files: []signalbox.ChangedFile{{Path: "a b", Status: signalbox.FileAdded}, {Path: "b", From: "c", Status: signalbox.FileRenamed, Deletions: 1, Binary: true}},
		},
	}
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &want})
	got, err := b.Result(b.ctx, t.ID)
	b.must(err)
	b.same("result", got, want)
	unchanged := b.submit()
	b.claim("a")
	want.Changes = nil
	b.happen(unchanged.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonChecks, Result: &want})
	got, err = b.Result(b.ctx, unchanged.ID)
	b.must(err)
	b.same("result without changes", got, want)
}

// second drops a value and keeps the error.
func second[T any](_ T, err error) error { return err }

func valuesAbsent(b *fixture) {
	no, zero := false, 0
	b.must(second(b.Submit(b.ctx, b.submission(func(s *store.Submission) {
		s.Request.Thinking, s.Request.Project, s.Request.AllowedTools = &no, &signalbox.Project{}, []string{}
		s.Request.Arguments = json.RawMessage("{}")
		s.Request.Checking = signalbox.Checking{Checks: []signalbox.Check{{Name: "a", Run: "b\n", TimeoutSeconds: 9}}, Retries: &zero}
	}))))
	b.submit()
	with, err := b.Request(b.ctx, id(1))
	b.must(err)
	without, err := b.Request(b.ctx, id(2))
	b.must(err)
	if with.Thinking == nil || *with.Thinking || without.Thinking != nil {
		b.Fatalf("thinking: %v and %v", with.Thinking, without.Thinking)
	}
	b.same("checking", with.Checking, signalbox.Checking{Checks: []signalbox.Check{{Name: "a", Run: "b\n", TimeoutSeconds: 9}}, Retries: &zero})
	b.same("no checking", without.Checking, signalbox.Checking{})
	if with.Project == nil || without.Project != nil {
		b.Fatalf("project: %v and %v", with.Project, without.Project)
	}
	if string(with.Arguments) != "{}" || without.Arguments != nil || without.Metadata != nil {
		b.Fatalf("arguments: %q and %q", with.Arguments, without.Arguments)
	}
	if with.Trace != "" || without.Trace != "" {
		b.Fatalf("traces: %q and %q", with.Trace, without.Trace)
	}
	if with.AllowedTools == nil || without.AllowedTools != nil {
		b.Fatalf("allowed tools: %v and %v", with.AllowedTools, without.AllowedTools)
	}
	b.happen(b.claim("a").ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{ExitCode: &zero}})
	b.run("a")
	ended, err := b.Result(b.ctx, id(1))
	b.must(err)
	silent, err := b.Result(b.ctx, id(2))
	b.must(err)
	if ended.ExitCode == nil || silent.ExitCode != nil {
		b.Fatalf("exit codes: %v and %v", ended.ExitCode, silent.ExitCode)
	}
}

func valuesNoAlias(b *fixture) {
	thinking, code := true, 1
	s := b.submission(withEnv("sealed"))
	s.Request.Thinking, s.Request.Project, s.Request.AllowedTools = &thinking, &signalbox.Project{Name: "p"}, []string{"Read"}
	s.Request.Arguments, s.Request.Metadata = json.RawMessage(`{"a":1}`), json.RawMessage(`{"m":1}`)
	b.must(second(b.Submit(b.ctx, s)))
	scribble := func(q signalbox.Request) {
		*q.Thinking, q.Project.Name, q.SealedEnv[0], q.AllowedTools[0] = false, "?", '?', "?"
		q.Arguments[0], q.Metadata[0] = '?', '?'
	}
	check := func() signalbox.Request {
		q, err := b.Request(b.ctx, id(1))
		b.must(err)
		if !*q.Thinking || q.Project.Name != "p" || string(q.SealedEnv) != "sealed" || q.AllowedTools[0] != "Read" ||
			string(q.Arguments) != `{"a":1}` || string(q.Metadata) != `{"m":1}` {
			b.Fatalf("the stored request changed: %+v", q)
		}
		return q
	}
	scribble(s.Request)
	scribble(check())
	claimed, err := b.Claim(b.ctx, b.offer("a"))
	b.must(err)
	scribble(claimed.Request)
	check()
	result := signalbox.Result{ExitCode: &code}
	b.happen(id(1), signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonExitNonzero, Result: &result})
	for range 2 {
		got, err := b.Result(b.ctx, id(1))
		b.must(err)
		b.same("exit code", *got.ExitCode, 1)
		*got.ExitCode, code = 99, 99
	}
	windows := []signalbox.AccountWindow{{Name: "five_hour"}}
	told, err := b.ChangeAccount(b.ctx, signalbox.AccountEvent{Kind: signalbox.AccountReported, Account: "max", Now: b.now, Windows: windows})
	b.must(err)
	windows[0].Name, told.Account.Windows[0].Name = "?", "?"
	b.accounts()[0].Windows[0].Name = "?"
	b.same("window", b.accounts()[0].Windows[0].Name, "five_hour")
	b.submit()
	gate := &signalbox.Parking{Gate: closedMax}
	parked := b.claim("a")
	b.happen(parked.ID, signalbox.Event{Kind: signalbox.EventPark, Parking: gate})
	gate.Name = "?"
	b.same("gate", b.task(parked.ID).Parking.Gate, closedMax)
	a := anAgent("a")
	b.put(a)
	a.SealedToken[0] = '?'
	b.agents()[0].SealedToken[0] = '?'
	b.same("token", string(b.agents()[0].SealedToken), "sealed")
	counts, err := b.Counts(b.ctx)
	b.must(err)
	counts.Limits["work"], counts.Queues["work"] = 50, 50
	b.journal()[0].Message = "?"
	b.same("entry", b.journal()[0].Message, "")
}
