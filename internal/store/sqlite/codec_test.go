package sqlite

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Whatever stands in a damaged row, reading it must end in an error and not in
// a panic; and what can be read must be written as it was.
func FuzzReadEntries(f *testing.F) {
	var p packer
	var row []byte
	for range 3 {
		row = p.entry(row, &signalbox.Entry{At: time.UnixMilli(1), Kind: signalbox.EventClaim, QueueID: "queue-1", Fence: -1, Message: "m"})
	}
	f.Add(row)
	f.Add(p.entry(nil, &signalbox.Entry{Kind: signalbox.EventSubmit, Owner: "user:ann"}))
	f.Add(p.entry(nil, &signalbox.Entry{Kind: signalbox.EventScheduleFired, Schedule: "nightly"}))
	f.Add(row[:len(row)-1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 2})
	f.Fuzz(func(t *testing.T, row []byte) {
		entries, err := readEntries(row, 7)
		if err != nil {
			return
		}
		var again []byte
		for i := range entries {
			again = p.entry(again, &entries[i])
		}
		same, err := readEntries(again, 7)
		if err != nil || !reflect.DeepEqual(same, entries) {
			t.Fatalf("got %v (%v), want %v", same, err, entries)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	yes, code := true, -3
	f.Add(packRequest(&signalbox.Request{Model: "m", Project: &signalbox.Project{Name: "p"}, Thinking: &yes, HadEnv: true}))
	f.Add(packResult(&signalbox.Result{ExitCode: &code, CostUSD: 0.25, ErrorType: "e", Truncated: true, ToolCount: 3}))
	f.Add(packRequest(&signalbox.Request{AllowedTools: []string{"Read", ""}, SystemPrompt: "s"}))
	f.Add(packRequest(&signalbox.Request{AllowedTools: []string{}}))
	f.Add(packRequest(&signalbox.Request{Arguments: json.RawMessage(`{"a":1}`), Metadata: json.RawMessage(`{}`), TimeoutMS: 1500, HadEnv: true}))
	f.Add(packRequest(&signalbox.Request{TimeoutMS: 1}))
	f.Add(packRequest(&signalbox.Request{Trace: "00-1-2-01"}))
	f.Add(packResult(&signalbox.Result{Answer: `{"content":[]}`}))
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, rest []byte) {
		if r, err := unpackRequest("prompt", rest, nil); err == nil {
			again, err := unpackRequest("prompt", packRequest(&r), nil)
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("request: got %+v (%v), want %+v", again, err, r)
			}
		}
		if r, err := unpackResult("output", "tail", rest); err == nil && r.CostUSD == r.CostUSD && r.DurationSeconds == r.DurationSeconds {
			again, err := unpackResult("output", "tail", packResult(&r))
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("result: got %+v (%v), want %+v", again, err, r)
			}
		}
	})
}

// Nor may rows that hold what few tasks have, tokens or users, when they are
// damaged.
func FuzzUnpackExtra(f *testing.F) {
	now := time.UnixMilli(7).UTC()
	f.Add(packExtra(&signalbox.Task{Mode: signalbox.ModeChat, Owner: "user:ann", Depth: 8, Waits: true, QueuedAs: 3}))
	f.Add(packExtra(&signalbox.Task{Mode: signalbox.ModeTool, Tool: "report"}))
	f.Add(packToken(&signalbox.Token{Name: "n", Hash: []byte{1}, Scopes: []signalbox.Scope{"read"}, Agents: []string{}, ExpiresAt: now}))
	f.Add(packUser(&signalbox.User{Email: "e", Password: "p", Agents: []string{"a", ""}, CreatedAt: now, Disabled: true}))
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, row []byte) {
		var task, again signalbox.Task
		if unpackExtra(&task, row) == nil {
			if err := unpackExtra(&again, packExtra(&task)); err != nil || again != task {
				t.Fatalf("extra: got %+v (%v), want %+v", again, err, task)
			}
		}
		if token, err := unpackToken("t", row); err == nil {
			if again, err := unpackToken("t", packToken(&token)); err != nil || !reflect.DeepEqual(again, token) {
				t.Fatalf("token: got %+v (%v), want %+v", again, err, token)
			}
		}
		if user, err := unpackUser("u", row); err == nil {
			if again, err := unpackUser("u", packUser(&user)); err != nil || !reflect.DeepEqual(again, user) {
				t.Fatalf("user: got %+v (%v), want %+v", again, err, user)
			}
		}
	})
}

// Nor may those of schedules and their firings.
func FuzzUnpackSchedule(f *testing.F) {
	now, yes := time.UnixMilli(7).UTC(), true
	f.Add(packSchedule(&signalbox.Schedule{Cron: "@daily", Prompt: "p", Project: &signalbox.Project{Name: "p"}, Thinking: &yes, Enabled: true, Cursor: now}))
	f.Add(packRun(&signalbox.ScheduleRun{Status: signalbox.RunHeld, Previous: "queue-1", By: "ann", FiredAt: now, Missed: 3}))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, row []byte) {
		if s, err := unpackSchedule("s", row); err == nil {
			if again, err := unpackSchedule("s", packSchedule(&s)); err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("schedule: got %+v (%v), want %+v", again, err, s)
			}
		}
		if r, err := unpackRun("s", "r", row); err == nil {
			if again, err := unpackRun("s", "r", packRun(&r)); err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("run: got %+v (%v), want %+v", again, err, r)
			}
		}
	})
}

// Requests and entries that say nothing new are written as they always were,
// so that a file grows by nothing for those who trace and schedule nothing.
func TestRowsWithoutTraceAndScheduleAreAsBefore(t *testing.T) {
	call := signalbox.Request{TimeoutMS: 5}
	before := packRequest(&call)
	call.Trace = "00-1-2-01"
	traced := packRequest(&call)
	if before[0] != withCall || traced[0] != withTrace || string(traced[1:len(before)]) != string(before[1:]) {
		t.Errorf("%x and %x", before, traced)
	}
	if r, err := unpackRequest("p", before, nil); err != nil || r.Trace != "" || r.TimeoutMS != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	var p packer
	for want, e := range map[byte]signalbox.Entry{
		packedVersion: {Kind: signalbox.EventClaim}, withOwner: {Owner: "user:ann"}, withSchedule: {Schedule: "nightly"},
	} {
		if row := p.entry(nil, &e); row[1] != want {
			t.Errorf("%+v is written in version %d, want %d", e, row[1], want)
		}
	}
}

// A schedule whose row is damaged is named, so that it can be removed.
func TestDamagedScheduleIsNamed(t *testing.T) {
	s := openTest(t, Options{})
	ctx := context.Background()
	row := signalbox.Schedule{ID: "sched-1", Name: "nightly"}
	if _, err := s.PutSchedule(ctx, row, []signalbox.ScheduleRun{{ID: "r"}}, signalbox.Entry{}); err != nil {
		t.Fatal(err)
	}
	err := s.do(ctx, 0, func(w *writer) error {
		_, err := w.exec(`UPDATE schedules SET body = x'01ff'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedule(ctx, "sched-1"); signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt || !strings.Contains(err.Error(), "sched-1") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Schedules(ctx); signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt {
		t.Errorf("got %v", err)
	}
	if was, err := s.DeleteSchedule(ctx, "sched-1", signalbox.Entry{}); err != nil || !was {
		t.Errorf("removed %v (%v)", was, err)
	}
}

// Rows that were written before there were tool calls say nothing of them, and
// those of tasks that are none are written as ever.
func TestRowsOfBeforeToolCalls(t *testing.T) {
	tools := packRequest(&signalbox.Request{Model: "m", AllowedTools: []string{"Read"}})
	plain := packRequest(&signalbox.Request{Model: "m"})
	if tools[0] != withTools || plain[0] != packedVersion {
		t.Errorf("versions %d and %d", tools[0], plain[0])
	}
	for _, row := range [][]byte{tools, plain, nil} {
		if r, err := unpackRequest("p", row, nil); err != nil || r.Arguments != nil || r.Metadata != nil || r.TimeoutMS != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	long := packResult(&signalbox.Result{ErrorType: "e", ToolCount: 3, Answer: "a"})
	short := packResult(&signalbox.Result{ErrorType: "e", ToolCount: 3})
	if string(long[:len(short)]) != string(short) {
		t.Error("a result without an answer is not written as it was")
	}
	if r, err := unpackResult("o", "t", short); err != nil || r.Answer != "" || r.ToolCount != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	var task signalbox.Task
	before := packExtra(&signalbox.Task{Mode: signalbox.ModeChat, Owner: "user:ann"})
	if err := unpackExtra(&task, before); err != nil || task.Tool != "" || task.Owner != "user:ann" {
		t.Errorf("%+v, %v", task, err)
	}
}
