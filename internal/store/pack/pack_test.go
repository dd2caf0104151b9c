package pack

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Reading a damaged row must end in an error and not in a panic; and what can be read must be packed to the
// same bytes.
func FuzzReadEntries(f *testing.F) {
	var p Packer
	var row []byte
	for range 3 {
		row = p.Entry(row, &signalbox.Entry{At: time.UnixMilli(1), Kind: signalbox.EventClaim, QueueID: "queue-1", Fence: -1, Message: "m"})
	}
	f.Add(row)
	f.Add(p.Entry(nil, &signalbox.Entry{Kind: signalbox.EventSubmit, Owner: "user:ann"}))
	f.Add(p.Entry(nil, &signalbox.Entry{Kind: signalbox.EventScheduleFired, Schedule: "nightly"}))
	f.Add(row[:len(row)-1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 2})
	f.Fuzz(func(t *testing.T, row []byte) {
		entries, err := ReadEntries(row, 7)
		if err != nil {
			return
		}
		var again []byte
		for i := range entries {
			again = p.Entry(again, &entries[i])
		}
		same, err := ReadEntries(again, 7)
		if err != nil || !reflect.DeepEqual(same, entries) {
			t.Fatalf("got %v (%v), want %v", same, err, entries)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	yes, code := true, -3
	f.Add(Request(&signalbox.Request{Model: "m", Project: &signalbox.Project{Name: "p"}, Thinking: &yes, HadEnv: true}))
	f.Add(Result(&signalbox.Result{ExitCode: &code, CostUSD: 0.25, ErrorType: "e", Truncated: true, ToolCount: 3}))
	f.Add(Request(&signalbox.Request{AllowedTools: []string{"Read", ""}, SystemPrompt: "s"}))
	f.Add(Request(&signalbox.Request{AllowedTools: []string{}}))
	f.Add(Request(&signalbox.Request{Arguments: json.RawMessage(`{"a":1}`), Metadata: json.RawMessage(`{}`), TimeoutMS: 1500, HadEnv: true}))
	f.Add(Request(&signalbox.Request{TimeoutMS: 1}))
	f.Add(Request(&signalbox.Request{Trace: "00-1-2-01"}))
	f.Add(Result(&signalbox.Result{Answer: `{"content":[]}`}))
	f.Add(Result(&signalbox.Result{Changes: &signalbox.Changes{Patch: "p", Files: []signalbox.ChangedFile{{Path: "a"}}}}))
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, rest []byte) {
		if r, err := ReadRequest("prompt", rest, nil); err == nil {
			again, err := ReadRequest("prompt", Request(&r), nil)
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("request: got %+v (%v), want %+v", again, err, r)
			}
		}
		if r, err := ReadResult("output", "tail", rest); err == nil && r.CostUSD == r.CostUSD && r.DurationSeconds == r.DurationSeconds {
			again, err := ReadResult("output", "tail", Result(&r))
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("result: got %+v (%v), want %+v", again, err, r)
			}
		}
	})
}

// The same holds for damaged rows of rare task fields, tokens and users.
func FuzzUnpackExtra(f *testing.F) {
	now := time.UnixMilli(7).UTC()
	f.Add(Extra(&signalbox.Task{Mode: signalbox.ModeChat, Owner: "user:ann", Depth: 8, Waits: true, QueuedAs: 3}))
	f.Add(Extra(&signalbox.Task{Mode: signalbox.ModeTool, Tool: "report"}))
	f.Add(Token(&signalbox.Token{Name: "n", Hash: []byte{1}, Scopes: []signalbox.Scope{"read"}, Agents: []string{}, ExpiresAt: now}))
	f.Add(User(&signalbox.User{Email: "e", Password: "p", Agents: []string{"a", ""}, CreatedAt: now, Disabled: true}))
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, row []byte) {
		var task, again signalbox.Task
		if ReadExtra(&task, row) == nil {
			if err := ReadExtra(&again, Extra(&task)); err != nil || again != task {
				t.Fatalf("extra: got %+v (%v), want %+v", again, err, task)
			}
		}
		if token, err := ReadToken("t", row); err == nil {
			if again, err := ReadToken("t", Token(&token)); err != nil || !reflect.DeepEqual(again, token) {
				t.Fatalf("token: got %+v (%v), want %+v", again, err, token)
			}
		}
		if user, err := ReadUser("u", row); err == nil {
			if again, err := ReadUser("u", User(&user)); err != nil || !reflect.DeepEqual(again, user) {
				t.Fatalf("user: got %+v (%v), want %+v", again, err, user)
			}
		}
	})
}

// The same holds for schedules and their runs.
func FuzzUnpackSchedule(f *testing.F) {
	now, yes := time.UnixMilli(7).UTC(), true
	f.Add(Schedule(&signalbox.Schedule{Cron: "@daily", Prompt: "p", Project: &signalbox.Project{Name: "p"}, Thinking: &yes, Enabled: true, Cursor: now, Landing: &signalbox.LandWish{Onto: "main"}}))
	f.Add(Run(&signalbox.ScheduleRun{Status: signalbox.RunHeld, Previous: "queue-1", By: "ann", FiredAt: now, Missed: 3}))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, row []byte) {
		if s, err := ReadSchedule("s", row); err == nil {
			if again, err := ReadSchedule("s", Schedule(&s)); err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("schedule: got %+v (%v), want %+v", again, err, s)
			}
		}
		if r, err := ReadRun("s", "r", row); err == nil {
			if again, err := ReadRun("s", "r", Run(&r)); err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("run: got %+v (%v), want %+v", again, err, r)
			}
		}
	})
}

// Requests and entries without new fields are packed as before, so that a file does not grow if traces and
// schedules are not used.
func TestRowsWithoutTraceAndScheduleKeepTheirEncoding(t *testing.T) {
	call := signalbox.Request{TimeoutMS: 5}
	before := Request(&call)
	call.Trace = "00-1-2-01"
	traced := Request(&call)
	if before[0] != withCall || traced[0] != withTrace || string(traced[1:len(before)]) != string(before[1:]) {
		t.Errorf("%x and %x", before, traced)
	}
	if r, err := ReadRequest("p", before, nil); err != nil || r.Trace != "" || r.TimeoutMS != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	var p Packer
	for want, e := range map[byte]signalbox.Entry{
		firstVersion: {Kind: signalbox.EventClaim}, withOwner: {Owner: "user:ann"}, withSchedule: {Schedule: "nightly"},
	} {
		if row := p.Entry(nil, &e); row[1] != want {
			t.Errorf("%+v is written in version %d, want %d", e, row[1], want)
		}
	}
}

// Rows that are older than tool calls can be read, and rows of other tasks are packed as before.
func TestReadRowsBeforeToolCalls(t *testing.T) {
	tools := Request(&signalbox.Request{Model: "m", AllowedTools: []string{"Read"}})
	plain := Request(&signalbox.Request{Model: "m"})
	if tools[0] != withTools || plain[0] != firstVersion {
		t.Errorf("versions %d and %d", tools[0], plain[0])
	}
	for _, row := range [][]byte{tools, plain, nil} {
		if r, err := ReadRequest("p", row, nil); err != nil || r.Arguments != nil || r.Metadata != nil || r.TimeoutMS != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	long := Result(&signalbox.Result{ErrorType: "e", ToolCount: 3, Answer: "a"})
	short := Result(&signalbox.Result{ErrorType: "e", ToolCount: 3})
	if string(long[:len(short)]) != string(short) {
		t.Error("a result without an answer is not written as it was")
	}
	if r, err := ReadResult("o", "t", short); err != nil || r.Answer != "" || r.ToolCount != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	var task signalbox.Task
	before := Extra(&signalbox.Task{Mode: signalbox.ModeChat, Owner: "user:ann"})
	if err := ReadExtra(&task, before); err != nil || task.Tool != "" || task.Owner != "user:ann" {
		t.Errorf("%+v, %v", task, err)
	}
}
