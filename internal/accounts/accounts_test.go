package accounts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// The kind of limit decides how the task is parked and what happens to its account.
func TestMeet(t *testing.T) {
	hour := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		limit   accounts.Limit
		account string
		parks   int
		kind    signalbox.GateKind
		until   time.Time
		event   signalbox.AccountEventKind
	}{
		"a limit that says when it resets":    {accounts.Limit{Kind: accounts.Usage, ResetsAt: hour}, "max", 0, signalbox.GateAccount, hour.Add(time.Second), signalbox.AccountLimit},
		"a limit that does not":               {accounts.Limit{Kind: accounts.Usage}, "max", 0, signalbox.GateAccount, noon.Add(61 * time.Second), signalbox.AccountLimit},
		"a limit of no known account":         {accounts.Limit{Kind: accounts.Usage, ResetsAt: hour}, "", 0, signalbox.GateTime, hour.Add(time.Second), ""},
		"an overloaded provider":              {accounts.Limit{Kind: accounts.Overloaded}, "max", 0, signalbox.GateTime, noon.Add(16 * time.Second), ""},
		"one for the third time":              {accounts.Limit{Kind: accounts.Overloaded}, "max", 2, signalbox.GateTime, noon.Add(61 * time.Second), ""},
		"one for the tenth time":              {accounts.Limit{Kind: accounts.Overloaded}, "max", 9, signalbox.GateTime, noon.Add(301 * time.Second), ""},
		"one that says when":                  {accounts.Limit{Kind: accounts.Overloaded, ResetsAt: noon.Add(time.Minute)}, "max", 5, signalbox.GateTime, noon.Add(61 * time.Second), ""},
		"a refused login":                     {accounts.Limit{Kind: accounts.Refused}, "max", 0, signalbox.GateAccount, time.Time{}, signalbox.AccountRefused},
		"a refused login of no known account": {accounts.Limit{Kind: accounts.Refused}, "", 0, "", time.Time{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			task := &signalbox.Task{}
			if c.parks > 0 {
				task.Parking = &signalbox.Parking{Count: c.parks}
			}
			c.limit.Began, c.limit.Text = true, "words"
			park, ev := accounts.Park(task, c.account, &c.limit, noon, time.Second)
			switch {
			case (park == nil) != (c.kind == ""):
				t.Fatalf("parked as %+v", park)
			case park != nil && (park.Kind != c.kind || !park.Until.Equal(c.until) || !park.Began || park.Text != "words" || (park.Name != "") != (c.kind == signalbox.GateAccount)):
				t.Errorf("parked as %+v, want %s until %s", park, c.kind, c.until)
			}
			if (ev == nil) != (c.event == "") || ev != nil && (ev.Kind != c.event || ev.Account != "max") {
				t.Errorf("the account: %+v, want %q", ev, c.event)
			}
		})
	}
}

// An agent's report is stored if it is news; an answer opens an account that is being tried only if it came
// since.
func TestHear(t *testing.T) {
	b := accounts.NewBook()
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	hear := func(agent string, used float64, answered time.Time, now time.Time) string {
		t.Helper()
		ev, ok := b.Report(agent, accounts.News{Name: "max", Windows: []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: used}}, AnsweredAt: answered}, now)
		if !ok {
			return ""
		}
		a, _ := signalbox.NextAccount(b.Get("max"), ev)
		b.Note(a)
		return string(ev.Kind)
	}
	change := func(kind signalbox.AccountEventKind, now time.Time) {
		a, _ := signalbox.NextAccount(b.Get("max"), signalbox.AccountEvent{Kind: kind, Account: "max", Now: now, Until: now.Add(time.Minute)})
		b.Note(a)
	}
	for _, c := range []struct {
		what string
		got  string
		want string
	}{
		{"an account that is not known", hear("a", 10, at(0), at(time.Second)), "heard"},
		{"the same again", hear("a", 10.2, at(time.Second), at(2*time.Second)), ""},
		{"a percent more", hear("a", 11.2, at(time.Second), at(3*time.Second)), "heard"},
		{"a little more, after a minute", hear("a", 11.3, at(time.Second), at(64*time.Second)), "heard"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	hear("b", 11.3, at(time.Second), at(64*time.Second))
	change(signalbox.AccountLimit, at(70*time.Second))
	if got := hear("a", 11.3, at(69*time.Second), at(71*time.Second)); got != "" || b.Blocked("max") == nil {
		t.Errorf("an answer at a closed account is %q", got)
	}
	change(signalbox.AccountDue, at(200*time.Second))
	if got := hear("b", 11.3, at(69*time.Second), at(201*time.Second)); got != "" {
		t.Errorf("an answer from before is %q", got)
	}
	if got := hear("b", 11.3, at(202*time.Second), at(203*time.Second)); got != "answered" || b.Blocked("max") != nil {
		t.Errorf("an answer to the probe is %q, and the account is %s", got, b.Get("max").State)
	}
}

// Part of an account is reserved for people by the usage of its fullest window, until that resets.
func TestReserve(t *testing.T) {
	b := accounts.NewBook()
	r := accounts.Reserve{Schedules: 80, Agents: 90}
	set := func(used float64) {
		b.Note(signalbox.Account{Name: "max", State: signalbox.AccountOpen, Windows: []signalbox.AccountWindow{
			{Name: "five_hour", UsedPercent: used, ResetsAt: noon.Add(time.Hour)}, {Name: "seven_day", UsedPercent: 20},
		}})
	}
	for _, c := range []struct {
		used float64
		now  time.Time
		want []signalbox.Source
	}{
		{79.9, noon, nil}, {80, noon, []signalbox.Source{signalbox.SourceScheduler}},
		{90, noon, []signalbox.Source{signalbox.SourceScheduler, signalbox.SourceAgent}}, {90, noon.Add(time.Hour), nil},
	} {
		set(c.used)
		if got := b.Reserved("max", r, c.now); !slices.Equal(got, c.want) {
			t.Errorf("at %.1f %%: %v, want %v", c.used, got, c.want)
		}
	}
	if !b.ReserveChanged("max", r, noon) || b.ReserveChanged("max", r, noon) || !b.ReserveChanged("max", r, noon.Add(time.Hour)) {
		t.Error("a change of what is reserved is not told once")
	}
	if g := b.HoldingGate(&signalbox.Task{Source: signalbox.SourceScheduler}, "max", r, noon); g == nil || !g.Until.Equal(noon.Add(time.Hour)) {
		t.Errorf("a task of a schedule waits at %+v", g)
	}
	if g := b.HoldingGate(&signalbox.Task{Source: signalbox.SourceCLI}, "max", r, noon); g != nil {
		t.Errorf("a task of a person waits at %+v", g)
	}
}

// The end of a probe is reported once, however often it is asked for.
func TestProbeEnded(t *testing.T) {
	b := accounts.NewBook()
	if !b.ProbeEnded("max", 3) || b.ProbeEnded("max", 3) || !b.ProbeEnded("max", 4) || !b.ProbeEnded("pro", 4) {
		t.Error("the end of a probe is not told once")
	}
}
