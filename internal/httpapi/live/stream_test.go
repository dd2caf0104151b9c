package live_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/live"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// eventID is the id of the last event but beats.
func (s *watcher) eventID() string { return fmt.Sprintf("%s.%d", s.epoch, s.revision) }

// A reader that reconnects gets what it missed as one change.
func TestLiveResumes(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	s := watchLive(b)
	s.read()
	lastID, before := s.eventID(), s.revision
	s.Close()
	id := b.Submit(`{"prompt":"one","agent":"coder"}`).QueueID
	b.RefreshLive()
	b.FinishTask(b.Run(a), signalbox.ReasonExitNonzero, signalbox.Result{})
	b.RefreshLive()
	second := b.Submit(`{"prompt":"two","agent":"coder"}`).QueueID
	b.RefreshLive()
	for _, how := range []apitest.Edit{apitest.Header("Last-Event-ID", lastID), func(r *http.Request) { r.URL.RawQuery = "after=" + lastID }} {
		back := watchLive(b, how)
		if got := back.read(); got != "change" || back.revision < before+3 {
			t.Fatalf("%s at %d, it was at %d: %+v", got, back.revision, before, back.last)
		}
		if back.tasks[id].State != "failed" || back.tasks[second].State != "pending" || len(back.agents["coder"].Line) != 1 || back.totals.Pending != 1 || back.totals.Failed24h != 1 {
			t.Errorf("%+v %+v", back.tasks, back.totals)
		}
		if n := len(back.live.Agents); n != 1 {
			t.Errorf("the agent comes %d times", n)
		}
		back.Close()
	}
	// One that has missed nothing gets a beat.
	s = watchLive(b)
	s.read()
	lastID = s.eventID()
	s.Close()
	if back := watchLive(b, apitest.Header("Last-Event-ID", lastID)); back.read() != "beat" {
		t.Errorf("%+v", back.last)
	}
}

func TestLiveResyncs(t *testing.T) {
	b := apitest.New(t).Serve()
	b.AddAgent("coder", 1)
	s := watchLive(b)
	s.read()
	for _, lastID := range []string{"other.1", fmt.Sprintf("%s.%d", s.epoch, s.revision+100), s.epoch + ".0"} {
		back := watchLive(b, apitest.Header("Last-Event-ID", lastID))
		if got := back.read(); got != "resync" || len(back.agents) != 1 || back.revision < s.revision || back.live.Totals == nil {
			t.Errorf("%s: %s %+v", lastID, got, back.last)
		}
		back.Close()
	}
	for _, lastID := range []string{"x", ".1", "a.-1", "a.b"} {
		if e := b.Do("GET", "/api/live", "", apitest.Header("Last-Event-ID", lastID)).WantError(t, 400, signalbox.CodeValidation); e.Field != "Last-Event-ID" {
			t.Errorf("%+v", e)
		}
		if e := b.Do("GET", "/api/live?after="+lastID, "").WantError(t, 400, signalbox.CodeValidation); e.Field != "after" {
			t.Errorf("%+v", e)
		}
	}
}

// A reader that missed more changes than are kept gets the whole view.
func TestLiveResyncsAfterAGap(t *testing.T) {
	b := apitest.New(t).Serve()
	b.AddAgent("coder", 1)
	s := watchLive(b)
	s.read()
	lastID := s.eventID()
	s.Close()
	for range live.MaxDeltas + 1 {
		submitCancelled(b)
		b.RefreshLive()
	}
	if back := watchLive(b, apitest.Header("Last-Event-ID", lastID)); back.read() != "resync" {
		t.Errorf("%+v", back.last)
	}
}

func submitCancelled(b *apitest.Fixture) {
	b.T.Helper()
	id := b.Submit(`{"prompt":"p"}`).QueueID
	if _, err := b.Engine.Cancel(b.T.Context(), id, "a test"); err != nil {
		b.T.Fatal(err)
	}
}

// A reader gets every revision in order, however fast they come.
func TestLiveHasNoGaps(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 1000 }).Serve()
	b.AddAgent("coder", 1)
	s := watchLive(b)
	s.read()
	for round := range 5 {
		ids := map[string]bool{}
		for range 20 {
			ids[b.Submit(`{"prompt":"p"}`).QueueID] = true
		}
		for len(ids) > 0 {
			before := s.revision
			if s.read() == "beat" {
				continue
			}
			if s.last.Name != "change" || s.revision != before+1 {
				t.Fatalf("round %d: after %d comes %+v", round, before, s.last)
			}
			for _, task := range s.live.Tasks {
				delete(ids, task.QueueID)
			}
		}
	}
	if s.totals.Pending != 100 || s.queues["work"].Waiting != 100 || len(s.queues["work"].Line) != 10 {
		t.Errorf("%+v %+v", s.totals, s.queues["work"])
	}
}

// eventTimes records when the events of a stream arrived.
type eventTimes struct {
	at    []time.Time
	names []string
}

func (a *eventTimes) read(c net.Conn) {
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			a.at, a.names = append(a.at, time.Now()), append(a.names, name)
		}
	}
}

// Changes come at most five times a second, and an event at least once a second.
func TestLiveEventRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 10_000 })
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		apitest.WriteString(t, c, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		var got eventTimes
		done := make(chan struct{})
		go func() {
			got.read(c)
			close(done)
		}()
		for range 300 { // for three seconds, a hundred times a second
			time.Sleep(10 * time.Millisecond)
			b.Submit(`{"prompt":"p"}`)
		}
		for range 30 {
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		<-done
		if len(got.names) == 0 || got.names[0] != "snapshot" {
			t.Fatalf("%v", got.names)
		}
		changes := 0
		var last time.Time
		for i, name := range got.names {
			if i > 0 && got.at[i].Sub(got.at[i-1]) > time.Second {
				t.Errorf("nothing came for %s", got.at[i].Sub(got.at[i-1]))
			}
			if name != "change" {
				continue
			}
			if changes++; !last.IsZero() && got.at[i].Sub(last) < live.RefreshEvery {
				t.Errorf("a change %s after another", got.at[i].Sub(last))
			}
			last = got.at[i]
		}
		if changes < 14 || !slices.Contains(got.names, "beat") {
			t.Errorf("%d changes: %v", changes, got.names)
		}
	})
}

// A slow reader costs no more memory than the kept deltas: when it reads again, it gets the whole
// view.
func TestLiveSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		p, stop := apitest.ServePipes(t, b)
		slow := p.Dial(t) // an unbuffered pipe: a write blocks until it is read
		apitest.WriteString(t, slow, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		lines := bufio.NewReader(slow)
		for line := ""; !strings.HasPrefix(line, "event: snapshot"); {
			var err error
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		for range 2*live.MaxDeltas + 50 { // the write that blocks may hold as many as are kept
			submitCancelled(b)
			b.RefreshLive()
		}
		var text strings.Builder
		read := make(chan struct{})
		go func() {
			io.Copy(&text, lines)
			close(read)
		}()
		time.Sleep(2 * time.Second)
		stop()
		<-read
		got := text.String()
		if n := strings.Count(got, "event: resync"); n != 1 || strings.Count(got, "event: change") > live.MaxDeltas || !strings.Contains(got, "event: beat") {
			t.Errorf("%d resyncs and %d changes: %.3000s", n, strings.Count(got, "event: change"), got)
		}
	})
}

// The refresh loop runs while there are readers, and only then.
func TestLiveLoopRunsOnlyWithReaders(t *testing.T) {
	b := apitest.New(t).Serve()
	one, two := watchLive(b), watchLive(b)
	one.read()
	two.read()
	if !b.Server.Live().Running() {
		t.Error("the refresh loop does not run")
	}
	one.Close()
	two.until("a beat", func() bool { return two.last.Name == "beat" })
	two.Close()
	testkit.Wait(t, "the refresh loop ends", func() bool { return !b.Server.Live().Running() && b.Server.OpenStreams() == 0 })
}

func TestLiveEndsWithTheDirector(t *testing.T) {
	b := apitest.New(t).Serve()
	s := watchLive(b)
	s.read()
	b.Server.Stop()
	for {
		if _, ok := s.Read(); !ok {
			return
		}
	}
}

// A stream ends when the token of its reader is revoked.
func TestLiveEndsWithItsToken(t *testing.T) {
	b := apitest.New(t, apitest.WithToken).Serve()
	token, secret, err := b.Identity.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	s := watchLive(b, apitest.Bearer(secret))
	s.read()
	if _, err := b.Identity.RevokeToken(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := s.Read(); !ok {
			return
		}
	}
}

// A caller that is limited to some agents sees only these, and the totals of all.
func TestLiveOfALimitedCaller(t *testing.T) {
	tools := apitest.NewTools()
	tools.Statuses = apitest.QueueStates()
	b := apitest.New(t, apitest.WithTools(tools))
	mine, other := b.AddAgent("coder", 1), b.AddAgent("other", 1)
	b.HTTP = httptest.NewServer(liveAs(b, apitest.LimitedUser))
	t.Cleanup(func() {
		b.Server.Stop()
		http.DefaultClient.CloseIdleConnections()
		b.HTTP.Close()
	})
	id := b.Submit(`{"prompt":"seen","agent":"coder"}`).QueueID
	hidden := b.Submit(`{"prompt":"secret","agent":"other"}`).QueueID
	b.Run(mine)
	b.Run(other)
	foreign := b.Submit(`{"prompt":"secret"}`).QueueID
	b.Engine.Pause(t.Context(), "agent:other", "secret", "someone", time.Time{})
	s := watchLive(b)
	s.read()
	check := func() {
		t.Helper()
		if strings.Contains(s.last.Data, "other") || strings.Contains(s.last.Data, "secret") || strings.Contains(s.last.Data, hidden) || strings.Contains(s.last.Data, foreign) {
			t.Errorf("the event has data of other agents or owners: %s", s.last.Data)
		}
	}
	check()
	if len(s.agents) != 1 || len(s.tasks) != 1 || s.tasks[id].Agent != "coder" || s.totals.Running != 2 || s.totals.Pending != 1 || s.queues["work"].Waiting != 1 || len(s.queues["work"].Line) != 0 {
		t.Errorf("%s", s.last.Data)
	}
	if s.health.OK || s.health.More != 0 || len(s.health.Attention) != 1 || len(s.health.Notes) != 1 { // findings on tools, which everybody sees
		t.Errorf("%+v", s.health)
	}
	lastID := s.eventID()
	another := b.Submit(`{"prompt":"secret","agent":"other"}`).QueueID
	b.Submit(`{"prompt":"also seen","agent":"coder"}`)
	s.until("the line has changed", func() bool { check(); return len(s.agents["coder"].Line) == 1 })
	if s.totals.Pending != 3 || s.tasks[another].QueueID != "" {
		t.Errorf("%+v", s.totals)
	}
	s = watchLive(b, apitest.Header("Last-Event-ID", lastID))
	s.read()
	check()
}

// A reader resumes only after an event that it got itself, with the same rights:
// changes must not be applied to what another caller saw.
func TestLiveResumesOnlyForTheSameCaller(t *testing.T) {
	b := apitest.New(t)
	b.AddAgent("coder", 1)
	other := apitest.LimitedUser
	other.ID = "another"
	wider := apitest.LimitedUser
	wider.Agents = append([]string{"other"}, apitest.LimitedUser.Agents...)
	b.HTTP = httptest.NewServer(liveAs(b, apitest.LimitedUser))
	t.Cleanup(func() {
		b.Server.Stop()
		http.DefaultClient.CloseIdleConnections()
		b.HTTP.Close()
	})
	s := watchLive(b)
	s.read()
	lastID := s.eventID()
	for name, c := range map[string]struct {
		who  signalbox.Principal
		want string
	}{
		"the same":          {apitest.LimitedUser, "beat"},
		"another user":      {other, "resync"},
		"with other rights": {wider, "resync"},
		"without limits":    {signalbox.Principal{}, "resync"},
	} {
		b.HTTP.Config.Handler = liveAs(b, c.who)
		back := watchLive(b, apitest.Header("Last-Event-ID", lastID))
		if got := back.read(); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		back.Close()
	}
}

// liveAs serves the live view as a principal may see it.
func liveAs(b *apitest.Fixture, who signalbox.Principal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.Server.Live().Serve(w, r, who); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}
