package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func TestChatPrefersNotToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		begun := time.Now()
		var first, second, third api.ChatAccepted
		got := b.Do("POST", chatPath, `{"message":"m"}`, apitest.Header("Prefer", "respond-async")).Want(t, http.StatusAccepted, &first)
		wantCall(got, t, first.Execution.ID)
		if got.Header.Get("Preference-Applied") != "respond-async" || first.State != "pending" || first.Position != 0 || first.Execution.QueueStatus != "running" ||
			first.URL != "/api/queue/"+first.Execution.ID || first.SessionID == "" || time.Since(begun) != 0 {
			t.Errorf("%+v %v", first, got.Header)
		}
		b.Accept(a)
		b.Do("POST", chatPath, `{"message":"m"}`, apitest.Header("Prefer", "handling=lenient, Respond-Async; x=1")).Want(t, http.StatusAccepted, &second)
		if second.Position != 1 || second.Execution.QueueStatus != "queued:1" || !second.Execution.WasQueued {
			t.Errorf("%+v", second)
		}
		got = b.Do("POST", chatPath, `{"message":"m"}`, apitest.Header("Prefer", "respond-async, wait=10")).Want(t, http.StatusAccepted, &third)
		if took := time.Since(begun); took != 10*time.Second || got.Header.Get("Preference-Applied") != "wait=10" || third.Position != 2 || third.Message == "" {
			t.Errorf("after %s: %+v", took, third)
		}
		for _, id := range []string{first.Execution.ID, second.Execution.ID, third.Execution.ID} {
			if row, err := b.Store.Task(t.Context(), id); err != nil || row.State.Terminal() {
				t.Errorf("%+v, %v", row, err)
			}
		}
	})
}

func TestChatInTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		b.Start("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		running := b.Accept(a)
		begun := time.Now()
		late := b.Start("POST", chatPath, `{"message":"m","overflow":"persist","wait_timeout":60}`)
		var out api.ChatAccepted
		late.Reply().Want(t, http.StatusAccepted, &out)
		if time.Since(begun) != time.Minute || out.State != "pending" || out.Position != 1 || !strings.Contains(out.Message, "1m0s") {
			t.Errorf("after %s: %+v", time.Since(begun), out)
		}
		started := b.Start("POST", chatPath, `{"message":"m","overflow":"persist"}`)
		time.Sleep(time.Minute)
		b.Complete(running, "")
		b.Complete(b.Accept(a), "")
		task := b.Accept(a)
		time.Sleep(time.Hour) // a started task is waited for
		b.Complete(task, "done")
		var end api.ChatResponse
		started.Reply().Want(t, 200, &end)
		if end.Response != "done" || end.Execution.ID != task.ID {
			t.Errorf("%+v", end)
		}
	})
}

func TestChatWhoseCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		state := func(id string) signalbox.Task {
			row, err := b.Store.Task(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return row
		}
		for _, accept := range []string{"application/json", "text/event-stream"} {
			stays := b.Start("POST", chatPath, `{"message":"m"}`, apitest.Header("Accept", accept))
			synctest.Wait()
			task := b.Accept(a)
			goes := b.Start("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, apitest.Header("Accept", accept))
			synctest.Wait()
			next, err := b.Store.Waiting(t.Context(), "agent:coder", store.Cursor{}, 10)
			if err != nil || len(next) != 1 {
				t.Fatalf("%v %v", next, err)
			}
			stays.Cancel()
			goes.Cancel()
			synctest.Wait()
			if got := state(task.ID); got.State != signalbox.Working || got.CancelRequested {
				t.Errorf("%s: a chat that was to go on: %+v", accept, got)
			}
			if got := state(next[0].ID); got.State != signalbox.Cancelled || got.Message != "cancelled by its caller, who went away" {
				t.Errorf("%s: a chat that was to be cancelled: %+v", accept, got)
			}
			b.Complete(task, "")
		}
	})
}

// Two callers with the same key wait for the same task, which is cancelled when the last of
// them disconnects.
func TestChatIsCancelledWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		b.AddChatAgent("coder", 1)
		const body = `{"message":"m","on_disconnect":"cancel"}`
		key := apitest.Header("Idempotency-Key", "k")
		one := b.Start("POST", chatPath, body, key)
		synctest.Wait()
		two := b.Start("POST", chatPath, body, key, apitest.Header("Accept", "text/event-stream"))
		synctest.Wait()
		one.Cancel()
		synctest.Wait()
		waiting, err := b.Store.Waiting(t.Context(), "agent:coder", store.Cursor{}, 10)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%+v, %v", waiting, err)
		}
		two.Cancel()
		synctest.Wait()
		if row, err := b.Store.Task(t.Context(), waiting[0].ID); err != nil || row.State != signalbox.Cancelled {
			t.Errorf("%+v, %v", row, err)
		}
	})
}

// A client that gave up has no id, but the same key finds the task, while it runs and after
// its end. Nothing runs twice.
func TestIncidentClientGivesUpWithNoId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		key := apitest.Header("Idempotency-Key", "turn-7")
		gaveUp := b.Start("POST", chatPath, `{"message":"Do it once"}`, key)
		synctest.Wait()
		task := b.Accept(a)
		gaveUp.Cancel()
		synctest.Wait()
		again := b.Start("POST", chatPath, `{"message":"Do it once"}`, key)
		synctest.Wait()
		b.Complete(task, "once")
		for range 2 { // while it runs, and after its end
			var out api.ChatResponse
			got := again.Reply().Want(t, 200, &out)
			wantCall(got, t, task.ID)
			if out.Response != "once" || got.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%+v %v", out, got.Header)
			}
			again = b.Start("POST", chatPath, `{"message":"Do it once"}`, key)
		}
		if e := b.Do("POST", chatPath, `{"message":"Another"}`, key).WantError(t, 422, signalbox.CodeIdempotency); e.Hint == "" {
			t.Errorf("%+v", e)
		}
		if list, err := b.Store.Waiting(t.Context(), "", store.Cursor{}, 10); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestChatWhileTheDirectorStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		plain := b.Start("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`)
		synctest.Wait()
		task := b.Accept(a)
		stream := b.Start("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, apitest.Header("Accept", "text/event-stream"))
		synctest.Wait()
		b.Server.Stop()
		var out api.ChatAccepted
		wantCall(plain.Reply().Want(t, http.StatusAccepted, &out), t, task.ID)
		if out.State != "working" || !strings.Contains(out.Message, "the director is stopping") {
			t.Errorf("%+v", out)
		}
		stream.Reply().Want(t, 200, nil)
		if got := apitest.EventNames(stream.Events()); got != "accepted" {
			t.Errorf("%s", got)
		}
		if c, err := b.Store.Counts(t.Context()); err != nil || c.Pending != 1 || c.InFlight[signalbox.Working] != 1 {
			t.Errorf("the director's end changed a task: %+v, %v", c, err)
		}
	})
}

// If a caller disconnects before its task is stored, the task is handled as the caller
// requested.
func TestChatWhoseCallerGoesAwayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		b.AddChatAgent("coder", 1)
		gone, leave := context.WithCancel(t.Context())
		leave()
		b.Start("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, func(r *http.Request) { *r = *r.WithContext(gone) }).Reply()
		page, err := b.Store.History(t.Context(), store.HistoryQuery{Limit: 10})
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].State != signalbox.Cancelled {
			t.Errorf("%+v, %v", page, err)
		}
	})
}
