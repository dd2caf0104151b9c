package httpapi_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// limited is a principal that may use one agent only.
var limited = signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "someone", Email: "someone@example.com", Scopes: signalbox.RoleUser.Scopes(), Agents: []string{"coder"}}

// chatOf has a whole chat with an agent and returns its task.
func (b *box) chatOf(a signalbox.Agent, body string) signalbox.Task {
	b.t.Helper()
	c := b.ask("POST", "/api/agents/"+a.Name+"/chat", body)
	synctest.Wait()
	t := b.accept(a)
	b.complete(t, "ok")
	var out api.ChatResponse
	c.answer().want(b.t, 200, &out)
	if out.SessionID != t.SessionID {
		b.t.Errorf("the answer names session %q, the task %q", out.SessionID, t.SessionID)
	}
	return t
}

func (b *box) sessionIDs(query string) []api.Session {
	b.t.Helper()
	var out api.Sessions
	b.do("GET", "/api/sessions"+query, "").want(b.t, 200, &out)
	return out.Sessions
}

func TestChatsGoOnWithTheCurrentSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		one := b.chatOf(a, `{"message":"Hello"}`)
		time.Sleep(time.Second)
		two := b.chatOf(a, `{"message":"Go on"}`)
		time.Sleep(time.Second)
		fresh := b.chatOf(a, `{"message":"Something else","new_session":true}`)
		time.Sleep(time.Second)
		after := b.chatOf(a, `{"message":"Go on with that"}`)
		time.Sleep(time.Second)
		if one.SessionID == "" || two.SessionID != one.SessionID || fresh.SessionID == one.SessionID || after.SessionID != fresh.SessionID {
			t.Fatalf("%q %q %q %q", one.SessionID, two.SessionID, fresh.SessionID, after.SessionID)
		}
		list := b.sessionIDs("")
		if len(list) != 2 || list[0].SessionID != fresh.SessionID || !list[0].Current || list[1].Current || list[0].Title != "Something else" || list[0].Turns != 2 ||
			list[0].Source != "user" || list[0].State != "active" || list[0].Agent != "coder" {
			t.Errorf("%+v", list)
		}

		// Who goes on with an older one makes it the current one.
		b.chatOf(a, `{"message":"Back to the first","session_id":"`+one.SessionID+`"}`)
		if got := b.chatOf(a, `{"message":"Go on"}`); got.SessionID != one.SessionID {
			t.Errorf("%q, want %q", got.SessionID, one.SessionID)
		}

		// What is put away is not gone on with.
		var s api.Session
		b.do("POST", "/api/sessions/"+one.SessionID+"/archive", "").want(t, 200, &s)
		b.do("POST", "/api/sessions/"+one.SessionID+"/archive", "").want(t, 200, &s)
		if s.State != "archived" || s.Current || s.Turns != 4 {
			t.Errorf("%+v", s)
		}
		if list := b.sessionIDs(""); len(list) != 1 || list[0].SessionID != fresh.SessionID {
			t.Errorf("%+v", list)
		}
		if list := b.sessionIDs("?state=archived"); len(list) != 1 || list[0].SessionID != one.SessionID {
			t.Errorf("%+v", list)
		}
		if got := b.chatOf(a, `{"message":"And now?"}`); got.SessionID == one.SessionID {
			t.Errorf("a chat goes on with a session that was put away")
		}
		b.do("POST", "/api/sessions/"+one.SessionID+"/restore", "").want(t, 200, &s)
		if got := b.chatOf(a, `{"message":"Back"}`); s.State != "active" || !s.Current || got.SessionID != one.SessionID {
			t.Errorf("%+v %q", s, got.SessionID)
		}
	})
}

func TestSessionsAreListedByWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		for _, name := range []string{"coder", "writer"} {
			a := b.talker(name, 1)
			for range 3 {
				b.chatOf(a, `{"message":"m","new_session":true}`)
				time.Sleep(time.Second)
			}
		}
		for query, want := range map[string]int{"": 6, "?agent=coder": 3, "?agent=nobody": 0, "?source=user": 6, "?source=scheduler": 0, "?owner=user:x": 0, "?state=gone": 0, "?state=all": 6, "?limit=2": 2} {
			if got := b.sessionIDs(query); len(got) != want {
				t.Errorf("%s: %d sessions, want %d", query, len(got), want)
			}
		}
		seen := map[string]bool{}
		for before, pages := "", 0; pages == 0 || before != ""; pages++ {
			var out api.Sessions
			b.do("GET", "/api/sessions?limit=4&before="+before, "").want(t, 200, &out)
			for _, s := range out.Sessions {
				seen[s.SessionID] = true
			}
			before = out.Next
		}
		if len(seen) != 6 {
			t.Errorf("page by page there are %d", len(seen))
		}
		b.do("GET", "/api/sessions?state=open", "").wantError(t, 400, signalbox.CodeValidation)
		b.do("POST", "/api/sessions/none/archive", "").wantError(t, 404, signalbox.CodeNotFound)
		b.do("POST", "/api/sessions/no%20id/restore", "").wantError(t, 404, signalbox.CodeNotFound)
	})
}

func TestASessionWithATurnUnderWayIsNotPutAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		c := b.ask("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		task := b.accept(a)
		b.do("POST", "/api/sessions/"+task.SessionID+"/archive", "").wantError(t, 409, signalbox.CodeConflict)
		b.complete(task, "")
		c.answer()
		b.do("POST", "/api/sessions/"+task.SessionID+"/archive", "").want(t, 200, nil)
	})
}

func TestSessionsOfOtherAgentsAreNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		mine := b.chatOf(b.talker("coder", 1), `{"message":"m"}`)
		other := b.chatOf(b.talker("writer", 1), `{"message":"m"}`)
		h := b.dir.HandlerAs(limited)
		var out api.Sessions
		askOf(t, h, "GET", "/api/sessions", "").answer().want(t, 200, &out)
		if len(out.Sessions) != 1 || out.Sessions[0].SessionID != mine.SessionID {
			t.Errorf("%+v", out)
		}
		askOf(t, h, "POST", "/api/sessions/"+other.SessionID+"/archive", "").answer().want(t, http.StatusNotFound, nil)
		askOf(t, h, "POST", "/api/sessions/"+mine.SessionID+"/archive", "").answer().want(t, 200, nil)
	})
}

// The seed's body, with the fields that came later.
func TestLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		b := newBox(t, fixed(&c))
		a := b.talker("my-agent", 1)
		wantBody(t, b.do("GET", "/api/agents/my-agent/queue", ""), 200, `{"agent_name":"my-agent","is_busy":false,"current_execution":null,"queue_length":0,"queued_executions":[],`+
			`"executions":[],"bypass":[],"slots":1,"max_queue_size":3}`)
		askOf(t, b.dir.HandlerAs(limitedTo("my-agent")), "POST", "/api/agents/my-agent/chat", `{"message":"Hello agent..."}`)
		synctest.Wait()
		c.pass(time.Second)
		one := b.accept(a)
		c.pass(4 * time.Second)
		var two api.SubmitResponse
		b.do("POST", "/api/queue/task", `{"prompt":"Daily report...","agent":"my-agent","source":"scheduler","source_job":"daily"}`).want(t, 201, &two)
		running := `{"id":"` + one.ID + `","agent_name":"my-agent","source":"user","source_user_id":"someone","source_user_email":"someone@example.com","message":"Hello agent...","queued_at":"2025-01-17T10:00:00Z","started_at":"2025-01-17T10:00:01Z","status":"running"}`
		wantBody(t, b.do("GET", "/api/agents/my-agent/queue", ""), 200, `{"agent_name":"my-agent","is_busy":true,"current_execution":`+running+`,"queue_length":1,`+
			`"queued_executions":[{"id":"`+two.QueueID+`","agent_name":"my-agent","source":"schedule","message":"Daily report...","queued_at":"2025-01-17T10:00:05Z","status":"queued"}],`+
			`"executions":[`+running+`],"bypass":[],"slots":1,"max_queue_size":3}`)
		b.do("GET", "/api/agents/nobody/queue", "").wantError(t, 404, signalbox.CodeNotFound)
		b.complete(one, "")
	})
}

func limitedTo(agents ...string) signalbox.Principal {
	p := limited
	p.Agents = agents
	return p
}
