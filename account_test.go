package signalbox_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
)

// accountIn returns an account in a situation of the table below, at noon.
func accountIn(situation string) signalbox.Account {
	state, until, _ := strings.Cut(situation, " ")
	a := signalbox.Account{Name: "max", State: signalbox.AccountState(state), Kind: "claude"}
	switch until {
	case "until 13":
		a.Until, a.Source, a.Reason = noon.Add(time.Hour), "event", "limit reached"
	case "until 11":
		a.Until, a.Source = noon.Add(-time.Hour), "event"
	case "by ann":
		a.Source, a.Reason = "ann", "holidays"
	case "with a probe":
		a.Probe, a.Until = signalbox.AccountProbe{Agent: "a", Fence: 7}, noon.Add(-time.Hour)
	case "unknown":
		return signalbox.Account{}
	}
	return a
}

func accountEvent(text string) signalbox.AccountEvent {
	kind, when, _ := strings.Cut(text, " ")
	ev := signalbox.AccountEvent{Kind: signalbox.AccountEventKind(kind), Account: "max", Now: noon, Source: "text", Of: "claude"}
	if hours, err := time.ParseDuration(when); err == nil {
		ev.Until = noon.Add(hours)
	}
	if ev.Kind == signalbox.AccountReported {
		ev.Windows = []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 50}}
	}
	return ev
}

// accountTable lists, for each event in each situation, the state after it and, if the account is
// closed, for how long from noon. Changes that matter to waiting tasks are in the journal; "="
// means that there is no such change.
var accountTable = []struct {
	event string
	after [7]string // unknown, open, closed until 13, closed until 11, closed by ann, trying, signed_out
}{
	{"limit 30m", [7]string{"closed 30m0s", "closed 30m0s", "=", "closed 30m0s", "=", "closed 30m0s", "="}},
	{"limit 2h", [7]string{"closed 2h0m0s", "closed 2h0m0s", "closed 2h0m0s", "closed 2h0m0s", "=", "closed 2h0m0s", "="}},
	{"limit", [7]string{"closed 1m0s", "closed 1m0s", "=", "=", "=", "closed 1m0s", "="}},
	{"limit -1h", [7]string{"closed 1m0s", "closed 1m0s", "=", "closed 1m0s", "=", "closed 1m0s", "="}},
	{"refused", [7]string{"signed_out", "signed_out", "signed_out", "signed_out", "signed_out", "signed_out", "="}},
	{"due", [7]string{"=", "=", "=", "trying -1h0m0s", "=", "=", "="}},
	{"answered", [7]string{"=", "=", "=", "=", "=", "open", "open"}},
	{"open", [7]string{"=", "=", "open", "open", "open", "open", "open"}},
	{"close", [7]string{"closed", "closed", "closed", "closed", "=", "closed", "closed"}},
	{"close 30m", [7]string{"closed 30m0s", "closed 30m0s", "closed 30m0s", "closed 30m0s", "closed 30m0s", "closed 30m0s", "closed 30m0s"}},
	{"heard", [7]string{"=", "=", "=", "=", "=", "=", "="}},
}

func TestNextAccountTable(t *testing.T) {
	situations := []string{" unknown", "open", "closed until 13", "closed until 11", "closed by ann", "trying with a probe", "signed_out"}
	for _, row := range accountTable {
		for n, situation := range situations {
			t.Run(row.event+"/"+situation, func(t *testing.T) {
				before, ev := accountIn(situation), accountEvent(row.event)
				if row.event == "close" {
					ev.Reason = before.Reason
				}
				got, message := signalbox.NextAccount(before, ev)
				outcome := string(got.State)
				if !got.Until.IsZero() {
					outcome += " " + got.Until.Sub(noon).String()
				}
				if message == "" {
					outcome = "="
				}
				if outcome != row.after[n] {
					t.Errorf("got %q (%+v), want %q", outcome, got, row.after[n])
				}
				if got.Name != "max" || got.Kind != "claude" || (message != "" && message != got.String()) {
					t.Errorf("%+v says %q", got, message)
				}
				if message == "" && before.State != "" && (got.State != before.State || !got.Until.Equal(before.Until) || got.Probe != before.Probe) {
					t.Errorf("from %+v to %+v without a word", before, got)
				}
				if got.State != signalbox.AccountTrying && got.Probe != (signalbox.AccountProbe{}) {
					t.Errorf("%s has a probe", got.State)
				}
				if got.State == signalbox.AccountOpen && (!got.Until.IsZero() || got.Reason != "" || got.Failures != 0) {
					t.Errorf("open, and still %+v", got)
				}
			})
		}
	}
}

// The time for which a limit closes an account, with and without a reported reset time.
func TestNextAccountBoundsHowLongItIsClosed(t *testing.T) {
	for _, c := range []struct {
		until, jitter, want time.Duration
	}{
		{-time.Second, 0, time.Minute},
		{-30 * 24 * time.Hour, 2 * time.Second, time.Minute + 2*time.Second},
		{time.Second, 0, time.Second},
		{5 * time.Hour, 9 * time.Second, 5*time.Hour + 9*time.Second},
		{8 * 24 * time.Hour, time.Minute, 8 * 24 * time.Hour},
		{365 * 24 * time.Hour, time.Minute, 8 * 24 * time.Hour},
	} {
		a, _ := signalbox.NextAccount(signalbox.Account{}, signalbox.AccountEvent{
			Kind: signalbox.AccountLimit, Account: "max", Now: noon, Until: noon.Add(c.until), Jitter: c.jitter,
		})
		if got := a.Until.Sub(noon); got != c.want || a.Failures != 0 {
			t.Errorf("a reset in %s with %s on top: closed for %s, want %s (%+v)", c.until, c.jitter, got, c.want, a)
		}
	}
	a, now := signalbox.Account{}, noon
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60} {
		a, _ = signalbox.NextAccount(a, signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max", Now: now})
		if got := a.Until.Sub(now); got != want*time.Minute || a.Failures != n+1 {
			t.Fatalf("the limit number %d without a reset: closed for %s after %d, want %d minutes", n+1, got, a.Failures, want)
		}
		now = a.Until
		a, _ = signalbox.NextAccount(a, signalbox.AccountEvent{Kind: signalbox.AccountDue, Account: "max", Now: now})
	}
	a, _ = signalbox.NextAccount(a, signalbox.AccountEvent{Kind: signalbox.AccountAnswered, Account: "max", Now: now})
	if a, _ = signalbox.NextAccount(a, signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max", Now: now}); a.Until.Sub(now) != time.Minute {
		t.Errorf("after an answer, a limit closes it for %s", a.Until.Sub(now))
	}
}

func TestNextAccountKeepsWindowsOfItsOwn(t *testing.T) {
	many := make([]signalbox.AccountWindow, signalbox.MaxAccountWindows+3)
	for i := range many {
		many[i] = signalbox.AccountWindow{Name: fmt.Sprint(i), UsedPercent: float64(i)}
	}
	a, message := signalbox.NextAccount(signalbox.Account{}, signalbox.AccountEvent{Kind: signalbox.AccountReported, Account: "max", Now: noon, Windows: many})
	if many[3].Name = "theirs"; a.Windows[3].Name != "3" {
		t.Error("the account shares its windows with the event")
	}
	if len(a.Windows) != signalbox.MaxAccountWindows || message != "" || !a.HeardAt.Equal(noon) || a.Fullest(noon).Name != "15" {
		t.Errorf("%+v, %q", a, message)
	}
	for used, want := range map[float64]float64{100.0 / 3: 33.333, math.NaN(): 0, -5: 0, math.Inf(1): 1e6} {
		w := []signalbox.AccountWindow{{UsedPercent: used, ResetsAt: noon.Add(time.Millisecond + time.Microsecond)}}
		b, _ := signalbox.NextAccount(a, signalbox.AccountEvent{Kind: signalbox.AccountReported, Account: "max", Windows: w})
		if b.Windows[0].UsedPercent != want || !b.Windows[0].ResetsAt.Equal(noon.Add(time.Millisecond)) {
			t.Errorf("%v percent used is %+v", used, b.Windows[0])
		}
	}
	a, _ = signalbox.NextAccount(a, signalbox.AccountEvent{Kind: signalbox.AccountRefused, Account: "max", Now: noon.Add(time.Hour), Login: "ann"})
	if len(a.Windows) != signalbox.MaxAccountWindows || !a.HeardAt.Equal(noon) || a.Login != "ann" || !a.Since.Equal(noon.Add(time.Hour)) {
		t.Errorf("an event that tells no windows: %+v", a)
	}
}

// For any sequence of events: a closed account admits nothing, a trying account admits one claim
// at a time, and an account closed by a person reopens only by a person or when its time is over.
func TestNextAccountAnyHistory(t *testing.T) {
	kinds := []signalbox.AccountEventKind{
		signalbox.AccountLimit, signalbox.AccountRefused, signalbox.AccountDue, signalbox.AccountAnswered,
		signalbox.AccountOpened, signalbox.AccountClosedByPerson, signalbox.AccountReported,
	}
	rapid.Check(t, func(t *rapid.T) {
		a, now := signalbox.Account{}, noon
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, -time.Minute}).Draw(t, "passes"))
			ev := signalbox.AccountEvent{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Account: "max", Now: now, Source: "ann", Reason: "r"}
			if in := rapid.SampledFrom([]time.Duration{0, -time.Hour, time.Minute, 300 * 24 * time.Hour}).Draw(t, "until"); in != 0 {
				ev.Until = now.Add(in)
			}
			before := a
			var message string
			a, message = signalbox.NextAccount(a, ev)
			for _, probing := range []bool{false, true} {
				claim := signalbox.AccountProbe{Agent: "a", Slot: 1}
				after, ok := a.Admit(claim, probing, now)
				want := a.State == signalbox.AccountTrying && !probing || a.State == signalbox.AccountOpen && (!a.Spreading(now) || a.Claims < 2)
				if ok != want && !a.Spreading(now) || !ok && a.State == signalbox.AccountOpen && a.Claims == 0 {
					t.Fatalf("%s admits %v", a.State, ok)
				}
				if ok && (after.Probe == claim) != (a.State == signalbox.AccountTrying) {
					t.Fatalf("%s has the probe %+v", a.State, after.Probe)
				}
			}
			if before.State != "" && before.State != a.State && message == "" {
				t.Fatalf("from %s to %s without a word", before.State, a.State)
			}
			if before.State == signalbox.AccountClosed && before.Until.IsZero() && a.State != before.State &&
				ev.Kind != signalbox.AccountOpened && ev.Kind != signalbox.AccountRefused {
				t.Fatalf("what a person closed is %s after %s", a.State, ev.Kind)
			}
			if ev.Kind == signalbox.AccountLimit && before.State == signalbox.AccountClosed && a.State == signalbox.AccountClosed &&
				(before.Until.IsZero() != a.Until.IsZero() || a.Until.Before(before.Until)) {
				t.Fatalf("a limit shortened it from %s to %s", before.Until, a.Until)
			}
			if ev.Kind == signalbox.AccountLimit && a.State == signalbox.AccountClosed && a.Until.Sub(now) > signalbox.MaxAccountClosed && !a.Until.Equal(before.Until) {
				t.Fatalf("a limit closed it for %s", a.Until.Sub(now))
			}
		}
	})
}

// After an account has reopened, its claims are spread: two at once and two more each second, for
// ten seconds.
func TestAnAccountThatOpensSpreadsItsClaims(t *testing.T) {
	a, _ := signalbox.NextAccount(signalbox.Account{}, signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "max", Now: noon})
	if after, ok := a.Admit(signalbox.AccountProbe{}, false, noon); ok || after.Claims != 0 {
		t.Error("a closed account lets a claim through")
	}
	a, _ = signalbox.NextAccount(a, signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: "max", Now: noon})
	claims := func(at time.Duration) (n int) {
		for after, ok := a.Admit(signalbox.AccountProbe{}, false, noon.Add(at)); ok && n < 1000; after, ok = a.Admit(signalbox.AccountProbe{}, false, noon.Add(at)) {
			a, n = after, n+1
		}
		return n
	}
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{0, 2}, {900 * time.Millisecond, 0}, {time.Second, 2}, {4 * time.Second, 6}, {10 * time.Second, 1000}} {
		if n := claims(c.at); n != c.want {
			t.Errorf("%d claims %s after it opened, want %d", n, c.at, c.want)
		}
	}
}
