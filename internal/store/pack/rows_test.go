package pack

import (
	"reflect"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func TestRowsRoundTrip(t *testing.T) {
	at, code := time.UnixMilli(7).UTC(), 3
	bad := "\xff\x00"
	agents := []signalbox.Agent{{Name: "a"}, {
		Name: "a", Kind: "k", URL: bad, Slots: 2, Fencing: true, Source: signalbox.AgentChild, SealedToken: []byte(bad),
		WorkDir: "w", Version: "1", CreatedAt: at,
	}, {Name: "a", SealedToken: []byte{}}, {Name: "a", Proof: true, Account: "max"}}
	for _, want := range agents {
		got, err := ReadAgent("a", Agent(&want))
		same(t, got, want, err)
	}
	accounts := []signalbox.Account{{Name: "max"}, {
		Name: "max", Kind: "k", Login: bad, State: signalbox.AccountTrying, Reason: "r", Window: "w", Source: "event", Since: at, Until: at,
		Failures: 3, Windows: []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 99.125, ResetsAt: at}, {}}, HeardAt: at,
		Probe: signalbox.AccountProbe{Agent: "a", Slot: 1, Fence: 9},
	}}
	for _, want := range accounts {
		got, err := ReadAccount("max", Account(&want))
		same(t, got, want, err)
	}
	holds := []signalbox.Hold{{Resource: bad, Agent: "a", Slot: 1, Fence: 3, N: 2, Values: []string{bad, ""}}, {Resource: bad, N: 1}}
	gotHolds, err := ReadHolds(bad, Holds(holds))
	same(t, gotHolds, holds, err)
	pause := signalbox.Pause{Queue: bad, Reason: bad, By: "me", AtMS: 1, UntilMS: 2}
	gotPause, err := ReadPause(bad, Pause(&pause))
	same(t, gotPause, pause, err)
	session := signalbox.Session{
		ID: bad, Agent: "a", Source: signalbox.SourceWeb, Owner: bad, Title: "t", State: signalbox.SessionGone, Turns: 2,
		CreatedAt: at, LastUsed: at, Current: true,
	}
	gotSession, err := ReadSession(bad, Session(&session))
	same(t, gotSession, session, err)
	audit := signalbox.Audit{
		Seq: 4, At: at, EventType: "e", Action: "a", Principal: "p", UserID: "u", AgentName: "n", Resource: "r", Result: "x",
		IPAddress: "i", UserAgent: bad, Details: "{}", Severity: "s", Prev: "v", Hash: "h",
	}
	gotAudit, err := ReadAudit(4, Audit(&audit))
	same(t, gotAudit, audit, err)
	stales := []signalbox.Stale{{Fence: 1}, {
		Fence: 2, Agent: "a", TaskID: "t", At: at, State: "failed", Message: bad,
		Result: signalbox.Result{Output: bad, Tail: "t", ExitCode: &code, Answer: "{}"},
	}}
	gotStales, err := ReadStales("queue-1", Stales(stales))
	same(t, gotStales, stales, err)
}

func same(t *testing.T, got, want any, err error) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}

// Reading a damaged row ends in an error or a value.
func FuzzReadRows(f *testing.F) {
	f.Add(Agent(&signalbox.Agent{Name: "a", SealedToken: []byte("t")}))
	f.Add(Pause(&signalbox.Pause{UntilMS: 1}))
	f.Add(Session(&signalbox.Session{Agent: "a", Current: true}))
	f.Add(Audit(&signalbox.Audit{Hash: "h"}))
	f.Add(Stales([]signalbox.Stale{{Fence: 1, Result: signalbox.Result{ErrorType: "e"}}}))
	f.Add(Usage(&signalbox.Usage{Runs: 1, Spent: signalbox.Spent{NanoUSD: 5}}))
	f.Add(Account(&signalbox.Account{State: signalbox.AccountTrying, Windows: []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 99.5}}, Probe: signalbox.AccountProbe{Fence: 3}}))
	f.Add([]byte(UsageID(&signalbox.UsageKey{Day: 20_000, Agent: "a", Owner: "user:ann"})))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, agent := ReadAgent("a", body)
		_, pause := ReadPause("q", body)
		_, session := ReadSession("s", body)
		_, audit := ReadAudit(1, body)
		_, stales := ReadStales("t", body)
		_, usage := ReadUsage(UsageID(&signalbox.UsageKey{}), body)
		_, key := ReadUsage(string(body), Usage(&signalbox.Usage{}))
		_, account := ReadAccount("max", body)
		for _, err := range []error{account, agent, pause, session, audit, stales, usage, key} {
			if err != nil && signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt {
				t.Fatalf("got %v", err)
			}
		}
	})
}
