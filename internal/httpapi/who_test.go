package httpapi_test

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

// A caller that is limited to an agent gets only events about it, but its position in the stream
// still advances.
func TestEventsShowWhatTheReaderMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a, w := b.AddChatAgent("coder", 1), b.AddChatAgent("writer", 1)
		h := b.Server.HandlerAs(apitest.LimitedUser)
		s := apitest.StartOn(t, h, "GET", "/api/events?include=position,output", "")
		synctest.Wait()
		hidden := b.Submit(`{"prompt":"secret","agent":"writer"}`).QueueID
		b.Submit(`{"prompt":"p","agent":"writer"}`)
		b.Runs.Print(hidden, "secret")
		b.Run(w)
		b.Submit(`{"prompt":"p","agent":"coder"}`)
		second := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
		task := b.Claim(a)
		b.Runs.Print(task.ID, "open")
		if _, err := b.Engine.Accept(t.Context(), task, "task-1", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		s.Cancel()
		got := s.Reply()
		if strings.Contains(string(got.Body), "secret") || strings.Contains(string(got.Body), "writer") || strings.Contains(string(got.Body), hidden) {
			t.Errorf("%s", got.Body)
		}
		if !strings.Contains(string(got.Body), fmt.Sprintf("id: %d\n", b.NewestEvent())) {
			t.Errorf("the place %d is not told: %s", b.NewestEvent(), got.Body)
		}
		if out := apitest.Moments(t, s.Events(), "output"); len(out) != 1 || out[0].Text != "open" || out[0].QueueID != task.ID {
			t.Errorf("%+v", out)
		}
		if places := apitest.Moments(t, s.Events(), "position"); len(places) == 0 || places[len(places)-1].QueueID != second || places[len(places)-1].Position != 1 {
			t.Errorf("%+v of %s", places, got.Body)
		}
		apitest.StartOn(t, h, "GET", "/api/events?queue_id="+hidden, "").Reply().Want(t, 404, nil)
	})
}

func TestTaskShowsWhoAskedAndWhatIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		chat := apitest.StartOn(t, b.Server.HandlerAs(apitest.LimitedUser), "POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		task := b.Accept(a)
		if _, err := b.Engine.ReleaseLane(t.Context(), "coder", "someone"); err != nil {
			t.Fatal(err)
		}
		stale := signalbox.Stale{Fence: task.Fence, Agent: "coder", TaskID: "task-1", At: b.Engine.Now(), State: "completed", Message: "completed", Result: signalbox.Result{Output: "too late", DurationSeconds: 3}}
		if err := b.Engine.KeepStale(t.Context(), task.ID, stale); err != nil {
			t.Fatal(err)
		}
		chat.Reply().Want(t, 409, nil)
		var v api.Task
		b.Do("GET", "/api/queue/"+task.ID, "").Want(t, 200, &v)
		if v.Mode != "chat" || v.SourceUserID != "someone" || v.SourceUserEmail != "someone@example.com" || v.SourceAgent != "" || v.SourceService != "" || v.Source != "user" {
			t.Errorf("%+v", v)
		}
		if len(v.Stale) != 1 || v.Stale[0].Result.Output != "too late" || v.Stale[0].Fence != task.Fence || v.State != "failed" || v.Result == nil || v.Result.Output != "" {
			t.Errorf("%+v", v)
		}
	})
	for who, source := range map[signalbox.PrincipalKind]string{signalbox.PrincipalUser: "user", signalbox.PrincipalAgent: "agent", signalbox.PrincipalService: "api", "": "user"} {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		h := b.Server.HandlerAs(signalbox.Principal{Kind: who, ID: "x", Scopes: signalbox.Scopes()})
		apitest.StartOn(t, h, "POST", chatPath, `{"message":"m"}`, apitest.Header("Prefer", "respond-async")).Reply().Want(t, 202, nil)
		var v api.Task
		b.Do("GET", "/api/queue/"+b.Accept(a).ID, "").Want(t, 200, &v)
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
