package live_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// landing changes the landing of a completed task like the driver. Only the journal announces it.
func landing(b *apitest.Fixture, id string, ev signalbox.LandingEvent) {
	b.T.Helper()
	t, err := b.Store.Task(b.T.Context(), id)
	if err != nil {
		b.T.Fatal(err)
	}
	ev.Now = b.Engine.Now()
	c, ok, err := t.ChangeLanding(ev)
	if err == nil && ok {
		_, err = b.Store.Apply(b.T.Context(), c, ev.Now)
	}
	if err != nil || !ok {
		b.T.Fatalf("%s: %v, %v", ev.Kind, ok, err)
	}
}

// Work that did not land and needs a person is a finding until it is dropped or tried again.
func TestWorkThatNeedsAPersonToLandIsTold(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{Changes: &signalbox.Changes{Workspace: "worktree", BaseBranch: "main", Commits: 1, FilesChanged: 1}})
	wantHealthy(b)
	land := "/api/queue/" + id + "/land"
	b.Do("POST", land, `{"onto":"release","method":"squash"}`).Want(t, http.StatusAccepted, nil)
	wantHealthy(b)

	landing(b, id, signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: "conflicts in cart.go\nand much more"})
	since := c.Now()
	c.Advance(time.Minute)
	got := wantAttention(b, "landing_stands", "warning", id, "has not landed on release, and needs you: conflicts in cart.go", "signalbox land "+id+" tries again", "--drop")
	if got.TaskID != id || !got.Since.Equal(since) || strings.Contains(got.Text, "much more") {
		t.Errorf("%+v", got)
	}

	// Trying again without settings repeats the same landing.
	var l api.Landing
	b.Do("POST", land, "").Want(t, http.StatusAccepted, &l)
	if l.Onto != "release" || l.Method != "squash" || l.State != "queued" {
		t.Errorf("%+v", l)
	}
	wantHealthy(b)
	landing(b, id, signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: "no"})
	wantAttention(b, "landing_stands", "warning", id)
	b.Do("DELETE", land, "").Want(t, http.StatusOK, nil)
	wantHealthy(b)
}
