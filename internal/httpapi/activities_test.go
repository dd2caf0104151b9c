package httpapi_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func listActivities(b *apitest.Fixture, query string) []api.Activity {
	b.T.Helper()
	var out api.Activities
	b.Do("GET", "/api/activities"+query, "").Want(b.T, 200, &out)
	return out.Activities
}

func TestActivitiesAreTheTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		done := chatTask(b, a, `{"message":"Hello"}`)
		time.Sleep(time.Second)
		failed := b.Submit(`{"prompt":"p","agent":"coder","source":"scheduler","source_job":"nightly"}`).QueueID
		b.FinishTask(b.Run(a), signalbox.ReasonAgentError, signalbox.Result{})
		b.Submit(`{"prompt":"p"}`)
		running := b.Run(a)
		chat := b.Start("POST", chatPath, `{"message":"wait"}`)
		synctest.Wait()

		list := listActivities(b, "")
		if len(list) != 4 {
			t.Fatalf("%+v", list)
		}
		queued, started, fail, first := list[0], list[1], list[2], list[3]
		if queued.Type != "chat_start" || queued.State != "queued" || queued.AgentName != "coder" || queued.TriggeredBy != "user" || queued.Details.QueueStatus != "queued:1" || !queued.Details.WasQueued || queued.StartedAt != nil {
			t.Errorf("%+v", queued)
		}
		if started.ID != running.ID || started.Type != "task_start" || started.State != "started" || started.StartedAt == nil || started.DurationMS != nil || started.RelatedExecutionID != running.ID {
			t.Errorf("%+v", started)
		}
		if fail.ID != failed || fail.Type != "schedule_start" || fail.State != "failed" || fail.Details.Reason != "agent_error" || fail.Error == "" || fail.Details.Job != "nightly" || fail.TriggeredBy != "schedule" {
			t.Errorf("%+v", fail)
		}
		if first.ID != done.ID || first.Type != "chat_start" || first.State != "completed" || first.Details.SessionID != done.SessionID || first.Details.QueueStatus != "running" || first.DurationMS == nil || first.Error != "" {
			t.Errorf("%+v", first)
		}
		for query, want := range map[string]int{
			"?agent=coder": 4, "?agent=writer": 0, "?type=chat_start": 2, "?type=agent_collaboration": 0, "?state=queued": 1, "?state=started": 1,
			"?state=completed": 1, "?state=failed": 1, "?type=chat_start&state=completed": 1, "?limit=3": 3,
		} {
			if got := listActivities(b, query); len(got) != want {
				t.Errorf("%s: %d, want %d", query, len(got), want)
			}
		}
		for _, query := range []string{"?type=x", "?state=pending", "?before=x", "?before=bGl2ZTow", "?limit=0"} {
			b.Do("GET", "/api/activities"+query, "").WantError(t, 400, signalbox.CodeValidation)
		}
		b.Complete(running, "")
		b.Complete(b.Accept(a), "")
		chat.Reply()
	})
}

func TestActivitiesPageByPage(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	want := []string{}
	for i := range 25 {
		id := b.Submit(fmt.Sprintf(`{"prompt":"%d","agent":"coder"}`, i)).QueueID
		want = append([]string{id}, want...)
		if i < 12 {
			b.Complete(b.Run(a), "")
		}
	}
	for _, limit := range []int{1, 4, 13, 25, 100} {
		var got []string
		for before, pages := "", 0; pages == 0 || before != ""; pages++ {
			var out api.Activities
			b.Do("GET", fmt.Sprintf("/api/activities?limit=%d&before=%s", limit, before), "").Want(t, 200, &out)
			for _, v := range out.Activities {
				got = append(got, v.ID)
			}
			before = out.Next
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("limit %d: got %v, want %v", limit, got, want)
		}
	}
}

// If a clock jumps back, no shown duration becomes negative.
func TestIncidentNegativeDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c apitest.Clock
		b := apitest.New(t, apitest.WithClock(&c))
		a := b.AddChatAgent("coder", 1)
		chat := b.Start("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		task := b.Accept(a)
		c.Advance(-time.Hour)
		b.Complete(task, "")
		var out api.ChatResponse
		chat.Reply().Want(t, 200, &out)
		var v api.Task
		b.Do("GET", "/api/queue/"+task.ID, "").Want(t, 200, &v)
		var q api.Queue
		b.Submit(`{"prompt":"p"}`)
		c.Advance(-time.Hour)
		b.Do("GET", "/api/queue", "").Want(t, 200, &q)
		list := listActivities(b, "?state=completed")
		if out.Metadata.DurationMS < 0 || v.Result.DurationSeconds < 0 || q.OldestAgeSeconds < 0 || len(list) != 1 || list[0].DurationMS == nil || *list[0].DurationMS < 0 {
			t.Errorf("%+v %+v %+v %+v", out.Metadata, v.Result, q, list)
		}
	})
}

// submitCalled stores a task that was called by another task's execution.
func submitCalled(b *apitest.Fixture, parent, agent, owner string, depth int) string {
	b.T.Helper()
	id, err := signalbox.NewID(time.Now(), rand.Reader)
	if err != nil {
		b.T.Fatal(err)
	}
	_, err = b.Store.Submit(b.T.Context(), store.Submission{Now: b.Engine.Now(), Task: signalbox.Task{
		ID: id, State: signalbox.Pending, Queue: signalbox.AgentQueue(agent), Limit: signalbox.LimitWork, CreatedAt: b.Engine.Now(),
		ParentID: parent, Depth: depth, Owner: owner, Source: signalbox.SourceAgent, Mode: signalbox.ModeChat, MaxAttempts: 1,
	}})
	if err != nil {
		b.T.Fatal(err)
	}
	return id
}

func TestActivityTree(t *testing.T) {
	b := apitest.New(t)
	root := submitCalled(b, "", "coder", "user:someone", 0)
	left := submitCalled(b, root, "writer", "agent:coder", 1)
	submitCalled(b, root, "reader", "agent:coder", 1)
	at := left
	for depth := 2; depth <= 12; depth++ { // deeper than calls can go
		at = submitCalled(b, at, "writer", "agent:writer", depth)
	}
	var v api.Activity
	b.Do("GET", "/api/activities/"+root, "").Want(t, 200, &v)
	if v.Type != "chat_start" || v.UserID != "someone" || len(v.Children) != 2 || v.Children[0].ID != left {
		t.Fatalf("%+v", v)
	}
	c := v.Children[0]
	if c.Type != "agent_collaboration" || c.ParentActivityID != root || c.SourceAgent != "coder" || c.TriggeredBy != "agent" || c.Details.Depth != 1 {
		t.Errorf("%+v", c)
	}
	depth := 0
	for at := &v; ; at = &at.Children[0] {
		if len(at.Children) == 0 {
			break
		}
		depth++
	}
	if depth != signalbox.MaxCallDepth {
		t.Errorf("the tree is %d deep", depth)
	}

	// Tasks that the caller may not see, and the trees below them, are left out.
	h := b.Server.HandlerAs(apitest.LimitedUser)
	v = api.Activity{}
	apitest.StartOn(t, h, "GET", "/api/activities/"+root, "").Reply().Want(t, 200, &v)
	if len(v.Children) != 0 {
		t.Errorf("%+v", v)
	}
	apitest.StartOn(t, h, "GET", "/api/activities/"+left, "").Reply().Want(t, 404, nil)
	var list api.Activities
	apitest.StartOn(t, h, "GET", "/api/activities", "").Reply().Want(t, 200, &list)
	if len(list.Activities) != 1 || list.Activities[0].ID != root {
		t.Errorf("%+v", list)
	}
	b.Do("GET", "/api/activities/queue-00000000000000000000000000", "").WantError(t, 404, signalbox.CodeNotFound)
}

func TestActivityTreeIsBounded(t *testing.T) {
	b := apitest.New(t)
	root := submitCalled(b, "", "coder", "", 0)
	for range 1200 {
		submitCalled(b, root, "writer", "agent:coder", 1)
	}
	var v api.Activity
	b.Do("GET", "/api/activities/"+root, "").Want(t, 200, &v)
	if len(v.Children) != 999 {
		t.Errorf("%d children", len(v.Children))
	}
}
