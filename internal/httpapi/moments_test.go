package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// of picks the events of one name.
func of(t *testing.T, list []sse, name string) []api.Event {
	t.Helper()
	var got []api.Event
	for _, e := range list {
		if e.name == name {
			if e.id != "" {
				t.Errorf("an event of the moment has a place: %+v", e)
			}
			got = append(got, e.event(t))
		}
	}
	return got
}

func TestEventsOfOneAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		b.talker("writer", 1)
		s := b.ask("GET", "/api/events?agent=coder", "")
		synctest.Wait()
		b.submit(`{"prompt":"p","agent":"writer"}`)
		id := b.submit(`{"prompt":"p"}`).QueueID // for any agent
		b.complete(b.work(a), "")
		b.submit(`{"prompt":"p","agent":"coder"}`)
		bypass := b.ask("POST", taskPath, `{"message":"m"}`)
		synctest.Wait()
		b.dir.Stop()
		bypass.answer()
		s.answer()
		if got := names(s.events()); got != "claim accept finish submit submit" {
			t.Errorf("%s", got)
		}
		if e := s.events()[0].event(t); e.QueueID != id || e.Agent != "coder" {
			t.Errorf("%+v", e)
		}
	})
	newBox(t).do("GET", "/api/events?agent=co%20der", "").wantError(t, 400, signalbox.CodeValidation)
}

// Who is limited to an agent is told of nothing else, and its place moves on
// all the same.
func TestEventsShowWhatTheReaderMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a, w := b.talker("coder", 1), b.talker("writer", 1)
		h := b.dir.HandlerAs(limited)
		s := askOf(t, h, "GET", "/api/events?include=position,output", "")
		synctest.Wait()
		hidden := b.submit(`{"prompt":"secret","agent":"writer"}`).QueueID
		b.submit(`{"prompt":"p","agent":"writer"}`)
		b.runs.print(hidden, "secret")
		b.work(w)
		b.submit(`{"prompt":"p","agent":"coder"}`)
		second := b.submit(`{"prompt":"p","agent":"coder"}`).QueueID
		task := b.claim(a)
		b.runs.print(task.ID, "open")
		if _, err := b.engine.Accept(t.Context(), task, "task-1", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		s.leave()
		got := s.answer()
		if strings.Contains(string(got.body), "secret") || strings.Contains(string(got.body), "writer") || strings.Contains(string(got.body), hidden) {
			t.Errorf("%s", got.body)
		}
		if !strings.Contains(string(got.body), fmt.Sprintf("id: %d\n", b.newest())) {
			t.Errorf("the place %d is not told: %s", b.newest(), got.body)
		}
		if out := of(t, s.events(), "output"); len(out) != 1 || out[0].Text != "open" || out[0].QueueID != task.ID {
			t.Errorf("%+v", out)
		}
		if places := of(t, s.events(), "position"); len(places) == 0 || places[len(places)-1].QueueID != second || places[len(places)-1].Position != 1 {
			t.Errorf("%+v of %s", places, got.body)
		}
		askOf(t, h, "GET", "/api/events?queue_id="+hidden, "").answer().want(t, 404, nil)
	})
}

func TestEventsWithPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, func(o *options) { o.engine.MaxSize = 1000 })
		a := b.agent("coder", 1)
		var ids []string
		for range 3 {
			ids = append(ids, b.submit(`{"prompt":"p"}`).QueueID)
		}
		s := b.ask("GET", "/api/events?include=position", "")
		time.Sleep(time.Second)
		got := of(t, s.events(), "position") // a snapshot for one that has just come
		if len(got) != 3 || got[0].QueueID != ids[0] || got[2].Position != 3 || got[1].Queue != "work" || got[1].State != "pending" || got[1].At.IsZero() {
			t.Fatalf("%+v", got)
		}
		b.work(a)
		time.Sleep(time.Second)
		got = of(t, s.events(), "position")[3:]
		if len(got) != 2 || got[0].QueueID != ids[1] || got[0].Position != 1 || got[1].QueueID != ids[2] || got[1].Position != 2 {
			t.Fatalf("%+v", got)
		}
		// One more at the end moves nobody else.
		id := b.submit(`{"prompt":"p"}`).QueueID
		time.Sleep(time.Second)
		got = of(t, s.events(), "position")[5:]
		if len(got) != 1 || got[0].QueueID != id || got[0].Position != 3 {
			t.Fatalf("%+v", got)
		}
		// Many changes at once are told once, of the first 200.
		for range 500 {
			b.submit(`{"prompt":"p"}`)
		}
		time.Sleep(time.Second)
		if got = of(t, s.events(), "position")[6:]; len(got) != 197 {
			t.Errorf("%d places", len(got))
		}
		s.leave()
		s.answer()
	})
}

func TestEventsWithOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.agent("coder", 3)
		begun := b.submit(`{"prompt":"p"}`).QueueID
		b.runs.print(begun, "before\n")
		old := b.work(a)
		s := b.ask("GET", "/api/events?include=output", "")
		time.Sleep(time.Second)
		b.runs.print(begun, "after\n")
		time.Sleep(time.Second)
		id := b.submit(`{"prompt":"p"}`).QueueID
		b.runs.print(id, "first\n")
		task := b.work(a)
		time.Sleep(time.Second)
		told := func() string {
			var all strings.Builder
			var last api.Event
			for _, e := range of(t, s.events(), "output") {
				if e.QueueID != last.QueueID || e.After != last.After+int64(len(last.Text)) {
					fmt.Fprintf(&all, "%s+%d:", e.QueueID[len(e.QueueID)-4:], e.After)
				}
				all.WriteString(e.Text) // how much one event has is not promised
				last = e
			}
			return all.String()
		}
		want := fmt.Sprintf("%s+7:after\n%s+0:first\n", begun[len(begun)-4:], id[len(id)-4:])
		if got := told(); got != want {
			t.Errorf("while it runs: got %q, want %q", got, want)
		}
		b.runs.print(id, "second\n")
		b.runs.end(id)
		b.finish(task, signalbox.ReasonCompleted, signalbox.Result{Output: "x", Tail: "first\nsecond\nthird\n"})
		time.Sleep(time.Second)
		want += "second\nthird\n"
		if got := told(); got != want {
			t.Errorf("after its end: got %q, want %q", got, want)
		}
		b.complete(old, "no log")
		s.leave()
		s.answer()
	})
	b := newBox(t)
	b.do("GET", "/api/events?include=log", "").wantError(t, 400, signalbox.CodeValidation)
}

// Output that comes faster than a reader is told it is left out and marked:
// its memory and the reader's line are bounded.
func TestEventsWithTooMuchOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.agent("coder", 1)
		s := b.ask("GET", "/api/events?include=output", "")
		time.Sleep(time.Second)
		id := b.submit(`{"prompt":"p"}`).QueueID
		b.runs.print(id, "")
		b.work(a)
		const seconds = 10
		line := strings.Repeat("ä", 511) + "\n"
		for range seconds * 10 {
			b.runs.print(id, strings.Repeat(line, 100)) // 1 MB a second
			time.Sleep(100 * time.Millisecond)
		}
		told, cut, at := 0, 0, int64(0)
		for _, e := range of(t, s.events(), "output") {
			told += len(e.Text)
			if e.Truncated {
				cut++
			} else if e.After != at {
				t.Errorf("a gap at %d that is not marked: %d", at, e.After)
			}
			if strings.ContainsRune(e.Text, '�') {
				t.Errorf("a character was cut through at %d", e.After)
			}
			at = e.After + int64(len(e.Text))
		}
		if told > (seconds+1)*64<<10 || told < seconds*32<<10 || cut == 0 {
			t.Errorf("%d bytes in %d s, %d cuts", told, seconds, cut)
		}
		s.leave()
		s.answer()
	})
}

// No more than 64 runs are followed; when one ends another takes its place.
func TestEventsWithOutputOfManyTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, func(o *options) { o.engine.MaxSize = 1000 })
		a := b.agent("coder", 100)
		var tasks []signalbox.Task
		for range 70 {
			b.submit(`{"prompt":"p"}`)
			task := b.work(a)
			b.runs.print(task.ID, "x")
			tasks = append(tasks, task)
		}
		s := b.ask("GET", "/api/events?include=output", "")
		time.Sleep(time.Second)
		told := func() map[string]bool {
			set := map[string]bool{}
			for _, e := range of(t, s.events(), "output") {
				set[e.QueueID] = true
			}
			return set
		}
		for _, task := range tasks {
			b.runs.print(task.ID, "y")
		}
		time.Sleep(time.Second)
		if n := len(told()); n != 64 {
			t.Errorf("%d tasks are followed", n)
		}
		for _, task := range tasks[:6] {
			b.runs.end(task.ID)
			b.complete(task, "")
		}
		time.Sleep(time.Second)
		for _, task := range tasks[6:] {
			b.runs.print(task.ID, "z")
		}
		time.Sleep(time.Second)
		if n := len(told()); n != 70 {
			t.Errorf("%d tasks were followed", n)
		}
		s.leave()
		s.answer()
	})
}

func TestTaskShowsWhoAskedAndWhatIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		chat := askOf(t, b.dir.HandlerAs(limited), "POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		task := b.accept(a)
		if _, err := b.engine.ReleaseLane(t.Context(), "coder", "someone"); err != nil {
			t.Fatal(err)
		}
		stale := signalbox.Stale{Fence: task.Fence, Agent: "coder", TaskID: "task-1", At: b.engine.Now(), State: "completed", Message: "completed", Result: signalbox.Result{Output: "too late", DurationSeconds: 3}}
		if err := b.engine.KeepStale(t.Context(), task.ID, stale); err != nil {
			t.Fatal(err)
		}
		chat.answer().want(t, 409, nil)
		var v api.Task
		b.do("GET", "/api/queue/"+task.ID, "").want(t, 200, &v)
		if v.Mode != "chat" || v.SourceUserID != "someone" || v.SourceUserEmail != "someone@example.com" || v.SourceAgent != "" || v.SourceService != "" || v.Source != "user" {
			t.Errorf("%+v", v)
		}
		if len(v.Stale) != 1 || v.Stale[0].Result.Output != "too late" || v.Stale[0].Fence != task.Fence || v.State != "failed" || v.Result == nil || v.Result.Output != "" {
			t.Errorf("%+v", v)
		}
	})
	for who, source := range map[signalbox.PrincipalKind]string{signalbox.PrincipalUser: "user", signalbox.PrincipalAgent: "agent", signalbox.PrincipalService: "api", "": "user"} {
		b := newBox(t)
		a := b.talker("coder", 1)
		h := b.dir.HandlerAs(signalbox.Principal{Kind: who, ID: "x", Scopes: signalbox.Scopes()})
		askOf(t, h, "POST", chatPath, `{"message":"m"}`, header("Prefer", "respond-async")).answer().want(t, 202, nil)
		var v api.Task
		b.do("GET", "/api/queue/"+b.accept(a).ID, "").want(t, 200, &v)
		got := map[signalbox.PrincipalKind]string{signalbox.PrincipalUser: v.SourceUserID, signalbox.PrincipalAgent: v.SourceAgent, signalbox.PrincipalService: v.SourceService}
		for kind, id := range got {
			if (id == "x") != (kind == who) {
				t.Errorf("%s: %+v", who, got)
			}
		}
		if v.Source != source {
			t.Errorf("%s: source %s", who, v.Source)
		}
	}
}
