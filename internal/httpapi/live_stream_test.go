package httpapi_test

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
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func (b *box) look() {
	b.t.Helper()
	if err := b.dir.Look(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (s *sights) place() string { return fmt.Sprintf("%s.%d", s.epoch, s.revision) }

// A reader that comes back gets what it missed as one change.
func TestLiveResumes(t *testing.T) {
	b := newBox(t).serve()
	a := b.agent("coder", 1)
	s := b.watch()
	s.read()
	place, before := s.place(), s.revision
	s.close()
	id := b.submit(`{"prompt":"one","agent":"coder"}`).QueueID
	b.look()
	b.finish(b.work(a), signalbox.ReasonExitNonzero, signalbox.Result{})
	b.look()
	second := b.submit(`{"prompt":"two","agent":"coder"}`).QueueID
	b.look()
	for _, how := range []edit{header("Last-Event-ID", place), func(r *http.Request) { r.URL.RawQuery = "after=" + place }} {
		back := b.watch(how)
		if got := back.read(); got != "change" || back.revision < before+3 {
			t.Fatalf("%s at %d, it was at %d: %+v", got, back.revision, before, back.last)
		}
		if back.tasks[id].State != "failed" || back.tasks[second].State != "pending" || len(back.agents["coder"].Line) != 1 || back.totals.Pending != 1 || back.totals.Failed24h != 1 {
			t.Errorf("%+v %+v", back.tasks, back.totals)
		}
		if n := len(back.live.Agents); n != 1 {
			t.Errorf("the agent comes %d times", n)
		}
		back.close()
	}
	// One that has missed nothing is told that.
	s = b.watch()
	s.read()
	place = s.place()
	s.close()
	if back := b.watch(header("Last-Event-ID", place)); back.read() != "beat" {
		t.Errorf("%+v", back.last)
	}
}

func TestLiveResyncs(t *testing.T) {
	b := newBox(t).serve()
	b.agent("coder", 1)
	s := b.watch()
	s.read()
	for _, place := range []string{"other.1", fmt.Sprintf("%s.%d", s.epoch, s.revision+100), s.epoch + ".0"} {
		back := b.watch(header("Last-Event-ID", place))
		if got := back.read(); got != "resync" || len(back.agents) != 1 || back.revision < s.revision || back.live.Totals == nil {
			t.Errorf("%s: %s %+v", place, got, back.last)
		}
		back.close()
	}
	for _, place := range []string{"x", ".1", "a.-1", "a.b"} {
		if e := b.do("GET", "/api/live", "", header("Last-Event-ID", place)).wantError(t, 400, signalbox.CodeValidation); e.Field != "Last-Event-ID" {
			t.Errorf("%+v", e)
		}
		if e := b.do("GET", "/api/live?after="+place, "").wantError(t, 400, signalbox.CodeValidation); e.Field != "after" {
			t.Errorf("%+v", e)
		}
	}
}

// Who missed more changes than are kept gets everything anew.
func TestLiveResyncsAfterAGap(t *testing.T) {
	b := newBox(t).serve()
	b.agent("coder", 1)
	s := b.watch()
	s.read()
	place := s.place()
	s.close()
	for range httpapi.MaxChanges + 1 {
		b.submitCancelled()
		b.look()
	}
	if back := b.watch(header("Last-Event-ID", place)); back.read() != "resync" {
		t.Errorf("%+v", back.last)
	}
}

func (b *box) submitCancelled() {
	b.t.Helper()
	id := b.submit(`{"prompt":"p"}`).QueueID
	if _, err := b.engine.Cancel(b.t.Context(), id, "a test"); err != nil {
		b.t.Fatal(err)
	}
}

// Every revision comes, one after the other, however much happens.
func TestLiveHasNoGaps(t *testing.T) {
	b := newBox(t, func(o *options) { o.engine.MaxSize = 1000 }).serve()
	b.agent("coder", 1)
	s := b.watch()
	s.read()
	for round := range 5 {
		ids := map[string]bool{}
		for range 20 {
			ids[b.submit(`{"prompt":"p"}`).QueueID] = true
		}
		for len(ids) > 0 {
			before := s.revision
			if s.read() == "beat" {
				continue
			}
			if s.last.name != "change" || s.revision != before+1 {
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

// arrivals notes when the events of a stream came.
type arrivals struct {
	at    []time.Time
	names []string
}

func (a *arrivals) read(c net.Conn) {
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			a.at, a.names = append(a.at, time.Now()), append(a.names, name)
		}
	}
}

// Changes come at most five times a second, and something once a second.
func TestLiveKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, func(o *options) { o.engine.MaxSize = 10_000 })
		p, stop := serving(t, b)
		c := p.dial(t)
		write(t, c, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		var got arrivals
		done := make(chan struct{})
		go func() {
			got.read(c)
			close(done)
		}()
		for range 300 { // for three seconds, a hundred times a second
			time.Sleep(10 * time.Millisecond)
			b.submit(`{"prompt":"p"}`)
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
			if changes++; !last.IsZero() && got.at[i].Sub(last) < httpapi.LookEvery {
				t.Errorf("a change %s after another", got.at[i].Sub(last))
			}
			last = got.at[i]
		}
		if changes < 14 || !slices.Contains(got.names, "beat") {
			t.Errorf("%d changes: %v", changes, got.names)
		}
	})
}

// A reader that is slow costs its connection and no memory: it gets everything
// anew when it reads again.
func TestLiveSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		p, stop := serving(t, b)
		slow := p.dial(t) // an unbuffered pipe: nothing is taken unless it is read
		write(t, slow, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		taken := bufio.NewReader(slow)
		for line := ""; !strings.HasPrefix(line, "event: snapshot"); {
			var err error
			if line, err = taken.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		for range 2*httpapi.MaxChanges + 50 { // it may hold as many as are kept when it stops
			b.submitCancelled()
			b.look()
		}
		var text strings.Builder
		read := make(chan struct{})
		go func() {
			io.Copy(&text, taken)
			close(read)
		}()
		time.Sleep(2 * time.Second)
		stop()
		<-read
		got := text.String()
		if n := strings.Count(got, "event: resync"); n != 1 || strings.Count(got, "event: change") > httpapi.MaxChanges || !strings.Contains(got, "event: beat") {
			t.Errorf("%d resyncs and %d changes: %.3000s", n, strings.Count(got, "event: change"), got)
		}
	})
}

// The loop runs while someone reads, and only then.
func TestLiveLooksWhileSomeoneReads(t *testing.T) {
	b := newBox(t).serve()
	one, two := b.watch(), b.watch()
	one.read()
	two.read()
	if !b.dir.Looks() {
		t.Error("nobody looks")
	}
	one.close()
	two.until("a beat", func() bool { return two.last.name == "beat" })
	two.close()
	for end := time.Now().Add(time.Minute); b.dir.Looks() || b.dir.Streams() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it still looks")
		}
	}
}

func TestLiveEndsWithTheDirector(t *testing.T) {
	b := newBox(t).serve()
	s := b.watch()
	s.read()
	b.dir.Stop()
	for {
		if _, ok := s.next(); !ok {
			return
		}
	}
}

// A stream ends when what its reader showed is taken away.
func TestLiveEndsWithItsToken(t *testing.T) {
	b := newBox(t, withToken).serve()
	known, shown, err := b.id.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	s := b.watch(bearer(shown))
	s.read()
	if _, err := b.id.RevokeToken(t.Context(), known.ID); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := s.next(); !ok {
			return
		}
	}
}

// Who is limited to some agents sees those, and the figures of all.
func TestLiveIsLimited(t *testing.T) {
	tools := newFakeTools()
	tools.queues = queueStates()
	b := newBox(t, withTools(tools))
	mine, other := b.agent("coder", 1), b.agent("other", 1)
	b.server = httptest.NewServer(b.dir.HandlerAs(limited))
	t.Cleanup(func() {
		b.dir.Stop()
		http.DefaultClient.CloseIdleConnections()
		b.server.Close()
	})
	id := b.submit(`{"prompt":"seen","agent":"coder"}`).QueueID
	hidden := b.submit(`{"prompt":"secret","agent":"other"}`).QueueID
	b.work(mine)
	b.work(other)
	foreign := b.submit(`{"prompt":"secret"}`).QueueID
	b.engine.Pause(t.Context(), "agent:other", "secret", "someone", time.Time{})
	s := b.watch()
	s.read()
	check := func() {
		t.Helper()
		if strings.Contains(s.last.data, "other") || strings.Contains(s.last.data, "secret") || strings.Contains(s.last.data, hidden) || strings.Contains(s.last.data, foreign) {
			t.Errorf("it shows what it may not: %s", s.last.data)
		}
	}
	check()
	if len(s.agents) != 1 || len(s.tasks) != 1 || s.tasks[id].Agent != "coder" || s.totals.Running != 2 || s.totals.Pending != 1 || s.queues["work"].Waiting != 1 || len(s.queues["work"].Line) != 0 {
		t.Errorf("%s", s.last.data)
	}
	if s.health.OK || s.health.More != 1 || len(s.health.Attention) != 2 { // of the tools, which are no agent's
		t.Errorf("%+v", s.health)
	}
	place := s.place()
	another := b.submit(`{"prompt":"secret","agent":"other"}`).QueueID
	b.submit(`{"prompt":"also seen","agent":"coder"}`)
	s.until("it has changed", func() bool { check(); return len(s.agents["coder"].Line) == 1 })
	if s.totals.Pending != 3 || s.tasks[another].QueueID != "" {
		t.Errorf("%+v", s.totals)
	}
	s = b.watch(header("Last-Event-ID", place))
	s.read()
	check()
}

// A reader goes on where it was itself, with the rights that it had. What
// another saw must not be what its changes are added to.
func TestLiveOfAnotherCallerIsNoPlace(t *testing.T) {
	b := newBox(t)
	b.agent("coder", 1)
	other := limited
	other.ID = "another"
	wider := limited
	wider.Agents = append([]string{"other"}, limited.Agents...)
	b.server = httptest.NewServer(b.dir.HandlerAs(limited))
	t.Cleanup(func() {
		b.dir.Stop()
		http.DefaultClient.CloseIdleConnections()
		b.server.Close()
	})
	s := b.watch()
	s.read()
	place := s.place()
	for name, c := range map[string]struct {
		who  signalbox.Principal
		want string
	}{
		"the same":          {limited, "beat"},
		"another user":      {other, "resync"},
		"with other rights": {wider, "resync"},
		"without limits":    {signalbox.Principal{}, "resync"},
	} {
		b.server.Config.Handler = b.dir.HandlerAs(c.who)
		back := b.watch(header("Last-Event-ID", place))
		if got := back.read(); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		back.close()
	}
}
