package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

func TestEventsOfOneAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		b.AddChatAgent("writer", 1)
		s := b.Start("GET", "/api/events?agent=coder", "")
		synctest.Wait()
		b.Submit(`{"prompt":"p","agent":"writer"}`)
		id := b.Submit(`{"prompt":"p"}`).QueueID // for any agent
		b.Complete(b.Run(a), "")
		b.Submit(`{"prompt":"p","agent":"coder"}`)
		bypass := b.Start("POST", "/api/agents/coder/task", `{"message":"m"}`)
		synctest.Wait()
		b.Server.Stop()
		bypass.Reply()
		s.Reply()
		if got := apitest.EventNames(s.Events()); got != "claim accept finish submit submit" {
			t.Errorf("%s", got)
		}
		if e := s.Events()[0].Decoded(t); e.QueueID != id || e.Agent != "coder" {
			t.Errorf("%+v", e)
		}
	})
	apitest.New(t).Do("GET", "/api/events?agent=co%20der", "").WantError(t, 400, signalbox.CodeValidation)
}

func TestEventsWithPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 1000 })
		a := b.AddAgent("coder", 1)
		var ids []string
		for range 3 {
			ids = append(ids, b.Submit(`{"prompt":"p"}`).QueueID)
		}
		s := b.Start("GET", "/api/events?include=position", "")
		time.Sleep(time.Second)
		got := apitest.Moments(t, s.Events(), "position") // a snapshot for a new reader
		if len(got) != 3 || got[0].QueueID != ids[0] || got[2].Position != 3 || got[1].Queue != "work" || got[1].State != "pending" || got[1].At.IsZero() {
			t.Fatalf("%+v", got)
		}
		b.Run(a)
		time.Sleep(time.Second)
		got = apitest.Moments(t, s.Events(), "position")[3:]
		if len(got) != 2 || got[0].QueueID != ids[1] || got[0].Position != 1 || got[1].QueueID != ids[2] || got[1].Position != 2 {
			t.Fatalf("%+v", got)
		}
		// Another task at the end moves no others.
		id := b.Submit(`{"prompt":"p"}`).QueueID
		time.Sleep(time.Second)
		got = apitest.Moments(t, s.Events(), "position")[5:]
		if len(got) != 1 || got[0].QueueID != id || got[0].Position != 3 {
			t.Fatalf("%+v", got)
		}
		// Many changes are sent together, for the first 200 tasks.
		for range 500 {
			b.Submit(`{"prompt":"p"}`)
		}
		time.Sleep(time.Second)
		if got = apitest.Moments(t, s.Events(), "position")[6:]; len(got) != 197 {
			t.Errorf("%d places", len(got))
		}
		s.Cancel()
		s.Reply()
	})
}

func TestEventsWithOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddAgent("coder", 3)
		begun := b.Submit(`{"prompt":"p"}`).QueueID
		b.Runs.Print(begun, "before\n")
		old := b.Run(a)
		s := b.Start("GET", "/api/events?include=output", "")
		time.Sleep(time.Second)
		b.Runs.Print(begun, "after\n")
		time.Sleep(time.Second)
		id := b.Submit(`{"prompt":"p"}`).QueueID
		b.Runs.Print(id, "first\n")
		task := b.Run(a)
		time.Sleep(time.Second)
		told := func() string {
			var all strings.Builder
			var last api.Event
			for _, e := range apitest.Moments(t, s.Events(), "output") {
				if e.QueueID != last.QueueID || e.After != last.After+int64(len(last.Text)) {
					fmt.Fprintf(&all, "%s+%d:", e.QueueID[len(e.QueueID)-4:], e.After)
				}
				all.WriteString(e.Text) // events have no guaranteed size
				last = e
			}
			return all.String()
		}
		want := fmt.Sprintf("%s+7:after\n%s+0:first\n", begun[len(begun)-4:], id[len(id)-4:])
		if got := told(); got != want {
			t.Errorf("while it runs: got %q, want %q", got, want)
		}
		b.Runs.Print(id, "second\n")
		b.Runs.End(id)
		b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Output: "x", Tail: "first\nsecond\nthird\n"})
		time.Sleep(time.Second)
		want += "second\nthird\n"
		if got := told(); got != want {
			t.Errorf("after its end: got %q, want %q", got, want)
		}
		b.Complete(old, "no log")
		s.Cancel()
		s.Reply()
	})
	b := apitest.New(t)
	b.Do("GET", "/api/events?include=log", "").WantError(t, 400, signalbox.CodeValidation)
}

// Output that comes faster than it may be sent is skipped and marked, so that memory and
// bandwidth are limited.
func TestEventsWithTooMuchOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddAgent("coder", 1)
		s := b.Start("GET", "/api/events?include=output", "")
		time.Sleep(time.Second)
		id := b.Submit(`{"prompt":"p"}`).QueueID
		b.Runs.Print(id, "")
		b.Run(a)
		const seconds = 10
		line := strings.Repeat("ä", 511) + "\n"
		for range seconds * 10 {
			b.Runs.Print(id, strings.Repeat(line, 100)) // 1 MB a second
			time.Sleep(100 * time.Millisecond)
		}
		told, cut, at := 0, 0, int64(0)
		for _, e := range apitest.Moments(t, s.Events(), "output") {
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
		s.Cancel()
		s.Reply()
	})
}

// At most 64 runs are followed; when one ends, another takes its place.
func TestEventsWithOutputOfManyTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 1000 })
		a := b.AddAgent("coder", 100)
		var tasks []signalbox.Task
		for range 70 {
			b.Submit(`{"prompt":"p"}`)
			task := b.Run(a)
			b.Runs.Print(task.ID, "x")
			tasks = append(tasks, task)
		}
		s := b.Start("GET", "/api/events?include=output", "")
		time.Sleep(time.Second)
		told := func() map[string]bool {
			set := map[string]bool{}
			for _, e := range apitest.Moments(t, s.Events(), "output") {
				set[e.QueueID] = true
			}
			return set
		}
		for _, task := range tasks {
			b.Runs.Print(task.ID, "y")
		}
		time.Sleep(time.Second)
		if n := len(told()); n != 64 {
			t.Errorf("%d tasks are followed", n)
		}
		for _, task := range tasks[:6] {
			b.Runs.End(task.ID)
			b.Complete(task, "")
		}
		time.Sleep(time.Second)
		for _, task := range tasks[6:] {
			b.Runs.Print(task.ID, "z")
		}
		time.Sleep(time.Second)
		if n := len(told()); n != 70 {
			t.Errorf("%d tasks were followed", n)
		}
		s.Cancel()
		s.Reply()
	})
}
