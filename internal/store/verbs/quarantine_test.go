package verbs_test

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// logText collects what is logged.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *logText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *logText) times(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

// damage corrupts a doc of the server.
func (s *server) damage(t *testing.T, kind, id string) {
	t.Helper()
	if !s.has(kind, id) {
		t.Fatalf("there is no %s %q", kind, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.load(&verbs.Want{})
	doc := verbs.Doc{DocKey: verbs.DocKey{Kind: kind, ID: id}, Body: []byte("\xff\xff\xff\xff damaged")}
	if err := s.write(&verbs.Delta{From: now.Counters, To: now.Counters, InUse: now.InUse, Docs: []verbs.Doc{doc}}); err != nil {
		t.Fatal(err)
	}
}

func (s *server) has(kind, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load(&verbs.Want{Docs: []verbs.DocKey{{Kind: kind, ID: id}}}).Docs[0] != nil
}

func beat(id string, take ...string) store.Beat {
	at := clock()
	return store.Beat{Now: at, Take: take, Director: store.Director{
		ID: id, Run: "run of " + id, URL: "http://" + id, Version: "1.2.3", Key: "k", StartedAt: at, Expires: at.Add(10 * time.Second),
	}, Heard: []store.Heard{{Agent: "far-" + id, At: at}}}
}

func mustBeat(t *testing.T, s *verbs.Shared, b store.Beat) store.Peers {
	t.Helper()
	answer, err := s.Beat(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// One damaged row of a director, or of its holdings, fails no director's beat.
func TestIncidentDamagedDirectorRowStopsNoOther(t *testing.T) {
	srv := newServer(t)
	first := srv.open(t, verbs.Options{})
	mustBeat(t, first, beat("x", "a", "b"))
	mustBeat(t, first, beat("y", "c"))
	srv.damage(t, "director", "x")
	srv.damage(t, "lease", "c")
	srv.damage(t, "heard", "far-x")

	var log logText
	s := srv.open(t, verbs.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		answer := mustBeat(t, s, beat("y", "c"))
		if len(answer.Directors) != 1 || len(answer.Taken) != 1 || len(answer.Heard) != 1 || answer.Heard[0].Agent != "far-y" {
			t.Fatalf("the answer is %+v", answer)
		}
	}
	list, err := s.Directors(ctx)
	if err != nil || len(list) != 2 || list[0].ID != "x" || list[0].Alive(clock()) {
		t.Errorf("directors: %+v, %v", list, err)
	}
	if held, err := s.Holders(ctx); err != nil || len(held) != 1 || held["c"] != "y" {
		t.Errorf("holders: %v, %v", held, err)
	}
	for _, id := range []string{"kind=director id=x", "kind=lease id=c", "kind=heard id=far-x"} {
		if n := log.times(id); n != 1 {
			t.Errorf("the log tells %d times of %s", n, id)
		}
	}
	if !srv.has("aside", "heard/far-x") || !srv.has("aside", "lease/c") || srv.has("heard", "far-x") || !srv.has("director", "x") {
		t.Error("what was damaged is not set aside")
	}
	// The next beat of the director writes a new row, with a new series of leases.
	if answer := mustBeat(t, s, beat("x")); !answer.Lapsed || len(answer.Directors) != 2 {
		t.Errorf("the answer to x is %+v", answer)
	}
}

// One damaged ticket does not block its tool queue.
func TestIncidentDamagedTicketDoesNotBlockQueue(t *testing.T) {
	srv := newServer(t)
	at := clock()
	enter := func(s *verbs.Shared, id string) []store.Ticket {
		t.Helper()
		list, err := s.Tickets(ctx, store.TicketStep{
			Queue: "db", Concurrent: 2, Now: at, Expires: at.Add(time.Minute), Enter: []store.Ticket{{ID: id, Queue: "db", Owner: "x", Tool: "t", Since: at}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return list.Tickets
	}
	enter(srv.open(t, verbs.Options{}), "one")
	srv.damage(t, "ticket/db", "one")
	var log logText
	s := srv.open(t, verbs.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if list := enter(s, "two"); len(list) != 1 || list[0].ID != "two" || list[0].Fence == 0 {
		t.Errorf("tickets: %+v", list)
	}
	enter(s, "three")
	if log.times("kind=ticket/db id=one") != 1 || !srv.has("aside", "ticket/db/one") || srv.has("ticket/db", "one") {
		t.Error("what was damaged is not set aside")
	}
}

// A damaged row of an account stops no claim and hides no other account: it counts as open, and the next
// event overwrites it.
func TestDamagedAccountIsOpen(t *testing.T) {
	srv := newServer(t)
	first := srv.open(t, verbs.Options{})
	change := func(s *verbs.Shared, name string, kind signalbox.AccountEventKind) {
		t.Helper()
		if _, err := s.ChangeAccount(ctx, signalbox.AccountEvent{Kind: kind, Account: name, Now: clock()}); err != nil {
			t.Fatal(err)
		}
	}
	mustSubmit(t, first)
	for _, name := range []string{"max", "pro"} {
		change(first, name, signalbox.AccountClosedByPerson)
	}
	srv.damage(t, "account", "max")
	var log logText
	s := srv.open(t, verbs.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	states := func() (list []string) {
		t.Helper()
		all, err := s.Accounts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			list = append(list, a.Name+" "+string(a.State))
		}
		return list
	}
	for range 2 {
		if got := states(); !slices.Equal(got, []string{"max open", "pro closed"}) {
			t.Fatalf("accounts: %v", got)
		}
	}
	if n := log.times("kind=account id=max"); n != 1 {
		t.Errorf("the log tells %d times of it", n)
	}
	offer := store.ClaimRequest{Agent: "a", Slots: 1, Queues: []string{signalbox.QueueWork}, Now: clock(), Expires: clock().Add(time.Minute)}
	for _, account := range []string{"pro", "max"} { // in this order: the second claim takes the agent's only slot
		offer.Account = account
		want := account == "max"
		if got, err := s.Claim(ctx, offer); err != nil || got.Found != want || got.Held == want {
			t.Errorf("a claim for %s: %+v, %v", account, got, err)
		}
	}
	change(s, "max", signalbox.AccountRefused)
	if got := states(); !slices.Equal(got, []string{"max signed_out", "pro closed"}) {
		t.Errorf("accounts: %v", got)
	}
}

// If the server does not answer, an unlock does not wait for it.
func TestUnlockIsBounded(t *testing.T) {
	srv := newServer(t)
	a := srv.open(t, verbs.Options{})
	late := &hanging{conn: srv.connect(), ended: make(chan time.Duration, 8)}
	b, err := verbs.NewShared(ctx, late, verbs.Options{Patience: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for range 2 { // after it was overtaken the batch takes the lock
		mustSubmit(t, a)
		mustSubmit(t, b)
	}
	if got, err := b.Claim(ctx, newClaim("a", 0)); err != nil || got.Found { // under the lock, with nothing to write
		t.Fatalf("claimed %v (%v)", got.Found, err)
	}
	select {
	case took := <-late.ended:
		if took > patient {
			t.Errorf("it took %s", took)
		}
	case <-time.After(patient):
		t.Fatal("no lock was given back")
	}
}

// hanging is a connection whose unlock hangs.
type hanging struct {
	*conn
	ended chan time.Duration
}

func (h *hanging) Unlock(ctx context.Context) {
	begun := time.Now()
	h.conn.Unlock(ctx)
	<-ctx.Done()
	h.ended <- time.Since(begun)
}

// If New fails, the backend is closed.
func TestFailedOpenClosesBackend(t *testing.T) {
	srv := newServer(t)
	srv.setFault(func(string, *verbs.Delta) fault { return refuses })
	g := &closing{conn: srv.connect()}
	if _, err := verbs.NewShared(ctx, g, verbs.Options{}); err == nil || !g.closed {
		t.Errorf("made with %v, closed: %v", err, g.closed)
	}
}

type closing struct {
	*conn
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// A damaged row of usage does not prevent the end of a run: it is quarantined, and a new row started.
func TestDamagedUsageKeepsNoRunFromEnding(t *testing.T) {
	srv := newServer(t)
	spend := func(s *verbs.Shared, usd float64) {
		t.Helper()
		mustSubmit(t, s)
		task := mustClaim(t, s, "a")
		ev := signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{CostUSD: usd}}
		if _, err := happen(s, task, ev); err != nil {
			t.Fatal(err)
		}
	}
	usage := func(s *verbs.Shared) []signalbox.Usage {
		t.Helper()
		list, err := s.Usage(ctx, store.UsageQuery{To: math.MaxInt32})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := srv.open(t, verbs.Options{})
	spend(first, 0.5)
	id := pack.UsageID(&usage(first)[0].UsageKey)
	srv.damage(t, "usage", id)

	s := srv.open(t, verbs.Options{})
	spend(s, 0.25)
	if list := usage(s); len(list) != 1 || list[0].Runs != 1 || list[0].NanoUSD != 250_000_000 {
		t.Errorf("the usage is %+v", list)
	}
	if !srv.has("aside", "usage/"+id) {
		t.Error("the damaged row is gone")
	}
}
