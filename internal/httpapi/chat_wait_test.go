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
	"github.com/signalbox-ai/signalbox/internal/store"
)

func TestChatPrefersNotToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		begun := time.Now()
		var first, second, third api.ChatAccepted
		got := b.do("POST", chatPath, `{"message":"m"}`, header("Prefer", "respond-async")).want(t, http.StatusAccepted, &first)
		got.wantCall(t, first.Execution.ID)
		if got.Header.Get("Preference-Applied") != "respond-async" || first.State != "pending" || first.Position != 0 || first.Execution.QueueStatus != "running" ||
			first.URL != "/api/queue/"+first.Execution.ID || first.SessionID == "" || time.Since(begun) != 0 {
			t.Errorf("%+v %v", first, got.Header)
		}
		b.accept(a)
		b.do("POST", chatPath, `{"message":"m"}`, header("Prefer", "handling=lenient, Respond-Async; x=1")).want(t, http.StatusAccepted, &second)
		if second.Position != 1 || second.Execution.QueueStatus != "queued:1" || !second.Execution.WasQueued {
			t.Errorf("%+v", second)
		}
		got = b.do("POST", chatPath, `{"message":"m"}`, header("Prefer", "respond-async, wait=10")).want(t, http.StatusAccepted, &third)
		if took := time.Since(begun); took != 10*time.Second || got.Header.Get("Preference-Applied") != "wait=10" || third.Position != 2 || third.Message == "" {
			t.Errorf("after %s: %+v", took, third)
		}
		for _, id := range []string{first.Execution.ID, second.Execution.ID, third.Execution.ID} {
			if row, err := b.store.Task(t.Context(), id); err != nil || row.State.Terminal() {
				t.Errorf("%+v, %v", row, err)
			}
		}
	})
}

func TestChatInTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		b.ask("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		running := b.accept(a)
		begun := time.Now()
		late := b.ask("POST", chatPath, `{"message":"m","overflow":"persist","wait_timeout":60}`)
		var out api.ChatAccepted
		late.answer().want(t, http.StatusAccepted, &out)
		if time.Since(begun) != time.Minute || out.State != "pending" || out.Position != 1 || !strings.Contains(out.Message, "1m0s") {
			t.Errorf("after %s: %+v", time.Since(begun), out)
		}
		started := b.ask("POST", chatPath, `{"message":"m","overflow":"persist"}`)
		time.Sleep(time.Minute)
		b.complete(running, "")
		b.complete(b.accept(a), "")
		task := b.accept(a)
		time.Sleep(time.Hour) // one that has started is waited for
		b.complete(task, "done")
		var end api.ChatResponse
		started.answer().want(t, 200, &end)
		if end.Response != "done" || end.Execution.ID != task.ID {
			t.Errorf("%+v", end)
		}
	})
}

func TestChatWhoseCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		state := func(id string) signalbox.Task {
			row, err := b.store.Task(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return row
		}
		for _, accept := range []string{"application/json", "text/event-stream"} {
			stays := b.ask("POST", chatPath, `{"message":"m"}`, header("Accept", accept))
			synctest.Wait()
			task := b.accept(a)
			goes := b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, header("Accept", accept))
			synctest.Wait()
			next, err := b.store.Waiting(t.Context(), "agent:coder", store.Cursor{}, 10)
			if err != nil || len(next) != 1 {
				t.Fatalf("%v %v", next, err)
			}
			stays.leave()
			goes.leave()
			synctest.Wait()
			if got := state(task.ID); got.State != signalbox.Working || got.CancelRequested {
				t.Errorf("%s: a chat that was to go on: %+v", accept, got)
			}
			if got := state(next[0].ID); got.State != signalbox.Cancelled || got.Message != "cancelled by its caller, who went away" {
				t.Errorf("%s: a chat that was to be cancelled: %+v", accept, got)
			}
			b.complete(task, "")
		}
	})
}

// Two callers with the same key wait for the same task: it is cancelled when
// the last of them goes.
func TestChatIsCancelledWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		b.talker("coder", 1)
		const body = `{"message":"m","on_disconnect":"cancel"}`
		key := header("Idempotency-Key", "k")
		one := b.ask("POST", chatPath, body, key)
		synctest.Wait()
		two := b.ask("POST", chatPath, body, key, header("Accept", "text/event-stream"))
		synctest.Wait()
		one.leave()
		synctest.Wait()
		waiting, err := b.store.Waiting(t.Context(), "agent:coder", store.Cursor{}, 10)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%+v, %v", waiting, err)
		}
		two.leave()
		synctest.Wait()
		if row, err := b.store.Task(t.Context(), waiting[0].ID); err != nil || row.State != signalbox.Cancelled {
			t.Errorf("%+v, %v", row, err)
		}
	})
}

// A client that gave up has no id in hand, but the same key finds the task,
// while it runs and after its end; nothing runs twice.
func TestIncidentClientGivesUpWithNoId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		key := header("Idempotency-Key", "turn-7")
		gaveUp := b.ask("POST", chatPath, `{"message":"Do it once"}`, key)
		synctest.Wait()
		task := b.accept(a)
		gaveUp.leave()
		synctest.Wait()
		again := b.ask("POST", chatPath, `{"message":"Do it once"}`, key)
		synctest.Wait()
		b.complete(task, "once")
		for range 2 { // while it runs, and after its end
			var out api.ChatResponse
			got := again.answer().want(t, 200, &out)
			got.wantCall(t, task.ID)
			if out.Response != "once" || got.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%+v %v", out, got.Header)
			}
			again = b.ask("POST", chatPath, `{"message":"Do it once"}`, key)
		}
		if e := b.do("POST", chatPath, `{"message":"Another"}`, key).wantError(t, 422, signalbox.CodeIdempotency); e.Hint == "" {
			t.Errorf("%+v", e)
		}
		if list, err := b.store.Waiting(t.Context(), "", store.Cursor{}, 10); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestChatWhileTheDirectorStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		plain := b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`)
		synctest.Wait()
		task := b.accept(a)
		stream := b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, header("Accept", "text/event-stream"))
		synctest.Wait()
		b.dir.Stop()
		var out api.ChatAccepted
		plain.answer().want(t, http.StatusAccepted, &out).wantCall(t, task.ID)
		if out.State != "working" || !strings.Contains(out.Message, "the director is stopping") {
			t.Errorf("%+v", out)
		}
		stream.answer().want(t, 200, nil)
		if got := names(stream.events()); got != "accepted" {
			t.Errorf("%s", got)
		}
		if c, err := b.store.Counts(t.Context()); err != nil || c.Pending != 1 || c.InFlight[signalbox.Working] != 1 {
			t.Errorf("the director's end changed a task: %+v, %v", c, err)
		}
	})
}

// A caller that has gone before its task was stored leaves a task that is
// dealt with as it wished.
func TestChatWhoseCallerGoesAwayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		b.talker("coder", 1)
		gone, leave := context.WithCancel(t.Context())
		leave()
		b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, func(r *http.Request) { *r = *r.WithContext(gone) }).answer()
		page, err := b.store.History(t.Context(), store.HistoryQuery{Limit: 10})
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].State != signalbox.Cancelled {
			t.Errorf("%+v, %v", page, err)
		}
	})
}
