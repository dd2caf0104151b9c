package live_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// From the limit to its end, the stream shows what the account, its agent and each task wait for,
// and the verdict names the account and the time.
func TestLiveOfAnAccountThatMeetsItsLimit(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	b.AddAgent("claude", 1)
	a := b.ReportAccount("claude", []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 97.5, ResetsAt: c.Now().Add(40 * time.Minute)}})
	s := watchLive(b)
	s.read()
	if got := s.accounts["claude"]; got.State != "open" || len(got.Windows) != 1 || got.Windows[0].UsedPercent != 97.5 || !slices.Equal(got.Agents, []string{"claude"}) {
		t.Errorf("%+v", got)
	}
	wantHealthy(b)

	id := b.Submit(`{"prompt":"p","agent":"claude"}`).QueueID
	behind := b.Submit(`{"prompt":"q"}`).QueueID
	b.Park(b.Run(a), 40*time.Minute)
	reset := c.Now().Add(40 * time.Minute)
	closed := "closed until " + reset.UTC().Format("2006-01-02T15:04") // and up to a second of jitter
	s.until("it is closed", func() bool {
		return s.accounts["claude"].Parked == 1 && s.agents["claude"].Face == "waiting for account"
	})
	if got := s.accounts["claude"]; got.State != "closed" || got.Until == nil || got.Until.Before(reset) || got.Waiting != 1 || got.Window != "five_hour" {
		t.Errorf("%+v", got)
	}
	line := s.agents["claude"].Line
	if len(line) != 1 || line[0].QueueID != id || line[0].State != "parked" || line[0].Agent != "" || line[0].WaitingFor == nil || line[0].WaitingFor.Since == nil ||
		line[0].WaitingFor.Name != "claude" || !strings.Contains(line[0].WaitingFor.Text, closed) {
		t.Errorf("%+v", line)
	}
	if s.tasks[id].State != "parked" || s.tasks[id].WaitingFor == nil {
		t.Errorf("%+v", s.tasks[id])
	}
	if work := s.queues["work"].Line; len(work) != 1 || work[0].QueueID != behind || work[0].WaitingFor == nil || work[0].WaitingFor.Since == nil || !strings.Contains(work[0].WaitingFor.Text, closed) {
		t.Errorf("%+v", work)
	}
	wantAttention(b, "account_closed", "warning", "Account claude", "is "+closed, "(five_hour): 2 tasks wait", "signalbox accounts open claude")
	wantFace(b, "claude", "waiting for account", closed)

	// A person closes it for longer: the waiting tasks show that.
	longer := c.Now().Add(3 * time.Hour)
	setAccount(b, signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "claude", Until: longer, Reason: "a release", Source: "ann"})
	want := "closed until " + longer.UTC().Format(time.RFC3339) + " (a release)"
	s.until("the lines say so", func() bool {
		own, work := s.agents["claude"].Line, s.queues["work"].Line
		return strings.Contains(own[0].WaitingFor.Text, want) && strings.Contains(work[0].WaitingFor.Text, want) && strings.Contains(s.agents["claude"].FaceText, want)
	})

	// Its time has come: one task goes first, and nothing needs a person.
	c.Advance(3*time.Hour + time.Second)
	if err := b.Engine.OpenGates(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := currentVerdict(b)
	if !v.OK || len(v.Notes) != 1 || v.Notes[0].Kind != "account_trying" || v.Text != "Account claude is being tried: one task goes first, and 2 tasks wait." {
		t.Errorf("%+v", v)
	}
	s.until("it is tried", func() bool { return s.accounts["claude"].State == "trying" && s.tasks[id].State == "pending" })
	b.Run(a)
	setAccount(b, signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: "claude", Source: "ann"})
	s.until("it is open", func() bool {
		got, work := s.accounts["claude"], s.queues["work"].Line
		return got.State == "open" && got.Parked+got.Waiting == 0 && len(work) == 1 && work[0].WaitingFor == nil && s.agents["claude"].Face == "running"
	})
	wantHealthy(b)
}

func setAccount(b *apitest.Fixture, ev signalbox.AccountEvent) {
	b.T.Helper()
	if _, _, err := b.Engine.SetAccount(b.T.Context(), ev); err != nil {
		b.T.Fatal(err)
	}
}

// A closed account without waiting tasks is a note. An account that is signed out needs a person at
// once.
func TestHealthOfAccounts(t *testing.T) {
	b := apitest.New(t).Serve()
	b.AddAgent("claude", 1)
	a := b.ReportAccount("claude", nil)
	setAccount(b, signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "claude", Reason: "a release", Source: "ann"})
	wantNote(b, "account_closed", "Account claude", "is closed until someone opens it (a release)", "signalbox accounts open claude")
	setAccount(b, signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: "claude", Source: "ann"})
	wantHealthy(b)

	if _, err := b.Engine.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: signalbox.AccountRefused, Account: "claude", Reason: "OAuth token has expired", Source: "event"}); err != nil {
		t.Fatal(err)
	}
	wantAttention(b, "account_signed_out", "error", "Account claude", "is signed out: a person must log in (OAuth token has expired)", "log in again where agent claude runs, then signalbox accounts open claude")
	b.Submit(`{"prompt":"p"}`)
	wantAttention(b, "account_signed_out", "error", "Account claude", ": 1 task waits")
	wantFace(b, a.Name, "waiting for account", "signed out")
}

// A queue with only parked tasks does not count as unserved.
func TestParkedTasksDoNotCountAsUnserved(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	b.AddAgent("claude", 1)
	a := b.ReportAccount("claude", nil)
	b.Submit(`{"prompt":"p"}`)
	task := b.Claim(a)
	_, err := b.Engine.Finish(t.Context(), task, engine.Outcome{
		Reason: signalbox.ReasonAgentError, Account: accounts.News{Name: "claude"}, Limit: &accounts.Limit{Kind: accounts.Usage, ResetsAt: c.Now().Add(time.Hour), Source: "text"},
	})
	if err != nil {
		t.Fatal(err)
	}
	changeAgent(b, "claude", func(l *engine.LiveAgent) { l.Up = false })
	c.Advance(time.Minute)
	v := currentVerdict(b)
	for _, f := range v.Attention {
		if f.Kind != "account_closed" {
			t.Errorf("%+v", f)
		}
	}
	if len(v.Attention) != 1 {
		t.Errorf("%+v", v)
	}
}

// Callers who may use only some agents see the accounts of these, with only these agents.
func TestAccountsThatACallerSees(t *testing.T) {
	b := apitest.New(t)
	for _, name := range []string{"ant", "coder", "cat"} {
		b.AddAgent(name, 1)
		b.ReportAccount(name, nil)
	}
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Account = "ant" })
	setAccount(b, signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "cat", Source: "ann"})
	setAccount(b, signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "ant", Source: "ann"})
	b.RefreshLive()
	b.HTTP = httptest.NewServer(liveAs(b, apitest.LimitedUser))
	t.Cleanup(b.HTTP.Close)
	s := watchLive(b)
	s.read()
	if len(s.accounts) != 1 || !slices.Equal(s.accounts["ant"].Agents, []string{"coder"}) {
		t.Errorf("%+v", s.accounts)
	}
	notes := func(list []api.Attention) (subjects []string) {
		for _, n := range list {
			subjects = append(subjects, n.Subject)
		}
		return subjects
	}
	if got := notes(s.health.Notes); !slices.Equal(got, []string{"Account ant"}) {
		t.Errorf("%v", got)
	}
}
