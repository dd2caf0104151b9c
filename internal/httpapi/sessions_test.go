package httpapi_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// chatTask has a complete chat with an agent and returns its task.
func chatTask(b *apitest.Fixture, a signalbox.Agent, body string) signalbox.Task {
	b.T.Helper()
	c := b.Start("POST", "/api/agents/"+a.Name+"/chat", body)
	synctest.Wait()
	t := b.Accept(a)
	b.Complete(t, "ok")
	var out api.ChatResponse
	c.Reply().Want(b.T, 200, &out)
	if out.SessionID != t.SessionID {
		b.T.Errorf("the answer names session %q, the task %q", out.SessionID, t.SessionID)
	}
	return t
}

func listSessions(b *apitest.Fixture, query string) []api.Session {
	b.T.Helper()
	var out api.Sessions
	b.Do("GET", "/api/sessions"+query, "").Want(b.T, 200, &out)
	return out.Sessions
}

func TestChatsGoOnWithTheCurrentSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		one := chatTask(b, a, `{"message":"Hello"}`)
		time.Sleep(time.Second)
		two := chatTask(b, a, `{"message":"Go on"}`)
		time.Sleep(time.Second)
		fresh := chatTask(b, a, `{"message":"Something else","new_session":true}`)
		time.Sleep(time.Second)
		after := chatTask(b, a, `{"message":"Go on with that"}`)
		time.Sleep(time.Second)
		if one.SessionID == "" || two.SessionID != one.SessionID || fresh.SessionID == one.SessionID || after.SessionID != fresh.SessionID {
			t.Fatalf("%q %q %q %q", one.SessionID, two.SessionID, fresh.SessionID, after.SessionID)
		}
		list := listSessions(b, "")
		if len(list) != 2 || list[0].SessionID != fresh.SessionID || !list[0].Current || list[1].Current || list[0].Title != "Something else" || list[0].Turns != 2 ||
			list[0].Source != "user" || list[0].State != "active" || list[0].Agent != "coder" {
			t.Errorf("%+v", list)
		}

		// Continuing an older conversation makes it the current one.
		chatTask(b, a, `{"message":"Back to the first","session_id":"`+one.SessionID+`"}`)
		if got := chatTask(b, a, `{"message":"Go on"}`); got.SessionID != one.SessionID {
			t.Errorf("%q, want %q", got.SessionID, one.SessionID)
		}

		// Chats do not continue an archived conversation.
		var s api.Session
		b.Do("POST", "/api/sessions/"+one.SessionID+"/archive", "").Want(t, 200, &s)
		b.Do("POST", "/api/sessions/"+one.SessionID+"/archive", "").Want(t, 200, &s)
		if s.State != "archived" || s.Current || s.Turns != 4 {
			t.Errorf("%+v", s)
		}
		if list := listSessions(b, ""); len(list) != 1 || list[0].SessionID != fresh.SessionID {
			t.Errorf("%+v", list)
		}
		if list := listSessions(b, "?state=archived"); len(list) != 1 || list[0].SessionID != one.SessionID {
			t.Errorf("%+v", list)
		}
		if got := chatTask(b, a, `{"message":"And now?"}`); got.SessionID == one.SessionID {
			t.Errorf("a chat goes on with a session that was put away")
		}
		b.Do("POST", "/api/sessions/"+one.SessionID+"/restore", "").Want(t, 200, &s)
		if got := chatTask(b, a, `{"message":"Back"}`); s.State != "active" || !s.Current || got.SessionID != one.SessionID {
			t.Errorf("%+v %q", s, got.SessionID)
		}
	})
}

func TestSessionsAreListedByWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		for _, name := range []string{"coder", "writer"} {
			a := b.AddChatAgent(name, 1)
			for range 3 {
				chatTask(b, a, `{"message":"m","new_session":true}`)
				time.Sleep(time.Second)
			}
		}
		for query, want := range map[string]int{"": 6, "?agent=coder": 3, "?agent=nobody": 0, "?source=user": 6, "?source=scheduler": 0, "?owner=user:x": 0, "?state=gone": 0, "?state=all": 6, "?limit=2": 2} {
			if got := listSessions(b, query); len(got) != want {
				t.Errorf("%s: %d sessions, want %d", query, len(got), want)
			}
		}
		seen := map[string]bool{}
		for before, pages := "", 0; pages == 0 || before != ""; pages++ {
			var out api.Sessions
			b.Do("GET", "/api/sessions?limit=4&before="+before, "").Want(t, 200, &out)
			for _, s := range out.Sessions {
				seen[s.SessionID] = true
			}
			before = out.Next
		}
		if len(seen) != 6 {
			t.Errorf("page by page there are %d", len(seen))
		}
		b.Do("GET", "/api/sessions?state=open", "").WantError(t, 400, signalbox.CodeValidation)
		b.Do("POST", "/api/sessions/none/archive", "").WantError(t, 404, signalbox.CodeNotFound)
		b.Do("POST", "/api/sessions/no%20id/restore", "").WantError(t, 404, signalbox.CodeNotFound)
	})
}

func TestASessionWithATurnUnderWayIsNotPutAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		c := b.Start("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		task := b.Accept(a)
		b.Do("POST", "/api/sessions/"+task.SessionID+"/archive", "").WantError(t, 409, signalbox.CodeConflict)
		b.Complete(task, "")
		c.Reply()
		b.Do("POST", "/api/sessions/"+task.SessionID+"/archive", "").Want(t, 200, nil)
	})
}

func TestSessionsOfOtherAgentsAreNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		mine := chatTask(b, b.AddChatAgent("coder", 1), `{"message":"m"}`)
		other := chatTask(b, b.AddChatAgent("writer", 1), `{"message":"m"}`)
		h := b.Server.HandlerAs(apitest.LimitedUser)
		var out api.Sessions
		apitest.StartOn(t, h, "GET", "/api/sessions", "").Reply().Want(t, 200, &out)
		if len(out.Sessions) != 1 || out.Sessions[0].SessionID != mine.SessionID {
			t.Errorf("%+v", out)
		}
		apitest.StartOn(t, h, "POST", "/api/sessions/"+other.SessionID+"/archive", "").Reply().Want(t, http.StatusNotFound, nil)
		apitest.StartOn(t, h, "POST", "/api/sessions/"+mine.SessionID+"/archive", "").Reply().Want(t, 200, nil)
	})
}

// The seed's body, with the fields that came later.
func TestLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c apitest.Clock
		b := apitest.New(t, apitest.WithClock(&c))
		a := b.AddChatAgent("my-agent", 1)
		apitest.WantBody(t, b.Do("GET", "/api/agents/my-agent/queue", ""), 200, `{"agent_name":"my-agent","is_busy":false,"current_execution":null,"queue_length":0,"queued_executions":[],`+
			`"executions":[],"bypass":[],"slots":1,"max_queue_size":3}`)
		apitest.StartOn(t, b.Server.HandlerAs(limitedTo("my-agent")), "POST", "/api/agents/my-agent/chat", `{"message":"Hello agent..."}`)
		synctest.Wait()
		c.Advance(time.Second)
		one := b.Accept(a)
		c.Advance(4 * time.Second)
		var two api.SubmitResponse
		b.Do("POST", "/api/queue/task", `{"prompt":"Daily report...","agent":"my-agent","source":"scheduler","source_job":"daily"}`).Want(t, 201, &two)
		running := `{"id":"` + one.ID + `","agent_name":"my-agent","source":"user","source_user_id":"someone","source_user_email":"someone@example.com","message":"Hello agent...","queued_at":"2025-01-17T10:00:00Z","started_at":"2025-01-17T10:00:01Z","status":"running"}`
		apitest.WantBody(t, b.Do("GET", "/api/agents/my-agent/queue", ""), 200, `{"agent_name":"my-agent","is_busy":true,"current_execution":`+running+`,"queue_length":1,`+
			`"queued_executions":[{"id":"`+two.QueueID+`","agent_name":"my-agent","source":"schedule","message":"Daily report...","queued_at":"2025-01-17T10:00:05Z","status":"queued"}],`+
			`"executions":[`+running+`],"bypass":[],"slots":1,"max_queue_size":3}`)
		b.Do("GET", "/api/agents/nobody/queue", "").WantError(t, 404, signalbox.CodeNotFound)
		b.Complete(one, "")
	})
}

func limitedTo(agents ...string) signalbox.Principal {
	p := apitest.LimitedUser
	p.Agents = agents
	return p
}
