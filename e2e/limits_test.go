package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Two agents use one login, which reaches its limit in the middle of two of many tasks:
// nothing fails, there are no useless requests, waiting callers are told until when, and
// after the reset everything continues in the same conversations.
func TestALimitIsAGate(t *testing.T) {
	w := newBox(t).wall("claude", limit{after: 3, length: wallTime(), refuse: unified})
	w.submits(soak.Pick(6, 20))
	told := w.j.await(20*time.Second, func(events []api.Event) bool {
		return slices.ContainsFunc(events, func(e api.Event) bool { return e.Kind == "account" && strings.Contains(e.Message, "closed") })
	})
	now := time.Now()
	if ends := w.runEnds(); !told || len(ends) == 0 || now.Sub(ends[0]) > time.Second {
		t.Errorf("told: %v, at %s; the runs ended at %s", told, now, ends)
	}
	before, status := w.account(), w.want(0, "status").out
	a := w.closed()
	if !namesGate(status, before) { // the second run may postpone it
		w.wantNamed("status", status, a)
	}
	w.wantClosed(a)
	w.wantEveryoneTold(a)
	w.completes(oneGate)
	if a = w.account(); a.State != "open" || a.Until != nil || a.Waiting+a.Parked != 0 {
		t.Errorf("at the end the account is %+v", a)
	}
}

// namesGate reports whether a text names the account, and until when it is closed.
func namesGate(said string, a api.Account) bool {
	return a.Until != nil && strings.Contains(said, a.Name) && strings.Contains(said, a.Until.UTC().Format("15:04:05"))
}

func (w *walled) wantNamed(who, said string, a api.Account) {
	w.t.Helper()
	if !namesGate(said, a) {
		w.t.Errorf("%s does not name both %s and %v:\n%s", who, a.Name, a.Until, said)
	}
}

// wantClosed: the account has the agents, and shows the provider's message.
func (w *walled) wantClosed(a api.Account) {
	w.t.Helper()
	_, reset := w.p.of()
	if a.Until == nil || a.Until.Before(reset) || a.Until.After(reset.Add(5*time.Second)) {
		w.t.Errorf("closed until %v, the limit ends at %s", a.Until, reset)
	}
	if a.Kind != w.kind || a.Source != "event" || a.Reason == "" || a.Login == "" || !slices.Equal(a.Agents, []string{w.kind + "-0", w.kind + "-1"}) {
		w.t.Errorf("the account: %+v", a)
	}
	if a.Parked == 0 || a.Parked > wallAgents || a.Parked+a.Waiting != len(w.ids) {
		w.t.Errorf("%d parked, %d waiting, of %d tasks", a.Parked, a.Waiting, len(w.ids))
	}
	five := slices.IndexFunc(a.Windows, func(one api.AccountWindow) bool { return one.Name == "five_hour" })
	seven := slices.IndexFunc(a.Windows, func(one api.AccountWindow) bool { return one.Name == "seven_day" })
	if five < 0 || seven < 0 || a.Windows[five].UsedPercent != 100 || a.Windows[seven].UsedPercent != 60 ||
		a.Windows[five].ResetsAt == nil || !a.Windows[five].ResetsAt.Equal(reset) {
		w.t.Errorf("its windows: %+v", a.Windows)
	}
	for _, shown := range []string{w.want(0, "accounts", "--json").out, w.want(0, "accounts").out} {
		w.wantNamed("accounts", shown, a)
		if strings.Contains(shown, w.p.limit.login) {
			w.t.Errorf("the login itself is shown:\n%s", shown)
		}
	}
}

// wantEveryoneTold: each task names the account that it waits for, and until
// when.
func (w *walled) wantEveryoneTold(a api.Account) {
	w.t.Helper()
	parked := 0
	for i, id := range w.ids {
		task := w.task(id)
		f := task.WaitingFor
		if f == nil || f.Kind != "account" || f.Name != a.Name || f.Until == nil || !f.Until.Equal(*a.Until) || f.Since == nil {
			w.t.Errorf("%s, %s, waits for %+v", id, task.State, f)
			continue
		}
		w.wantNamed("the task", f.Text, a)
		_, why := w.ask("GET", w.url+"/api/queue/"+id+"/why", "")
		w.wantNamed("why", why, a)
		if task.State == "parked" {
			parked++
		}
		if want := map[string]int{"parked": 1, "pending": 0}; task.Parks != want[task.State] {
			w.t.Errorf("%s is %s and was parked %d times", id, task.State, task.Parks)
		}
		if task.State == "parked" || i == len(w.ids)-1 {
			w.wantNamed("why", w.want(0, "why", id).out, a)
			w.wantNamed("status", w.want(0, "status", id).out, a)
		}
	}
	if parked != a.Parked {
		w.t.Errorf("%d tasks are parked, the account says %d", parked, a.Parked)
	}
}

// While a login is at its limit, a new agent with the same login takes no task. A new
// agent with another login takes waiting tasks, but none with another agent's
// conversation.
func TestALimitIsOfOneLogin(t *testing.T) {
	w := newBox(t).wall(eitherLogin(limit{agents: 1, after: 1, length: time.Hour}))
	w.submits(3)
	w.closed()
	w.add("same", w.p.limit.login)
	w.add("other", "sk-ant-oat01-another-login")
	met := slices.IndexFunc(w.ids, func(id string) bool { return w.task(id).State == "parked" })
	for i, id := range w.ids {
		if i != met {
			if task := w.completed(w.c, id); task.Agent != "other" {
				t.Errorf("%s was run by %s", id, task.Agent)
			}
		}
	}
	a := w.account()
	if a.State != "closed" || a.Parked != 1 || a.Waiting != 0 || !slices.Equal(a.Agents, []string{w.kind + "-0", "same"}) || len(w.accounts()) != 2 {
		t.Errorf("after tasks of another login the accounts are %+v", w.accounts())
	}
	if list, _ := w.p.of(); len(list) != 2 {
		t.Errorf("the login that is at its limit asked again\n%s", w.course(list))
	}
	w.p.lift()
	w.want(0, "accounts", "open", a.Name)
	if task := w.completed(w.c, w.ids[met]); task.Agent != w.kind+"-0" {
		t.Errorf("the conversation went on at %s", task.Agent)
	}
}

// The director is killed at the moment the limit is met, before it knows of it, and again
// when everything is stored, this time with the agents.
func TestALimitIsAGateThoughAllAreKilled(t *testing.T) {
	w := newBox(t).wall(eitherLogin(limit{after: 3, length: wallTime()}))
	w.submits(soak.Pick(4, 20))
	w.killed(w.directors...)
	w.closed()
	_, reset := w.p.of()
	for ok := true; ok; ok = soak.On() && time.Until(reset) > 3*time.Second {
		w.killed(slices.Concat(w.directors, w.agents)...)
	}
	w.completes(oneGate)
}

// Three directors share the queue; one of them is killed while the account is
// closed.
func TestALimitIsAGateOfAllDirectorsPostgres(t *testing.T) {
	ofAllDirectors(t, testserver.NewPostgres(t, testserver.PostgresOptions{}).Database(t))
}

func TestALimitIsAGateOfAllDirectorsRedis(t *testing.T) {
	soak.Only(t, "accounts that Redis keeps otherwise")
	ofAllDirectors(t, testserver.NewRedis(t, testserver.RedisOptions{}).URL())
}

func ofAllDirectors(t *testing.T, store string) {
	b := newBox(t)
	b.vars["SIGNALBOX_STORE"] = store
	b.vars["SIGNALBOX_SECRET_KEY"] = testKey
	w := b.behindWall(eitherLogin(limit{after: 3, length: wallTime()}))
	var addrs []string
	for _, name := range []string{"one", "two", "three"} {
		w.addDirector(name, filepath.Join(b.root, name))
		addrs = append(addrs, strings.TrimPrefix(w.url, "http://"))
	}
	b.vars["SIGNALBOX_TOKEN"], b.vars["SIGNALBOX_PROOF"] = b.token(), "off" // the balancer is not a director and cannot prove itself
	w.begin(newBalancer(t, addrs...).url)
	w.submits(soak.Pick(4, 20))
	w.closed()
	w.directors[0].kill()
	w.completes(oneGate)
}

// Codex reports the end of its limit in its message to the minute, and in its own record
// to the second.
func TestALimitIsAGateForCodex(t *testing.T) {
	w := newBox(t).wall("codex", limit{after: 3, length: soak.Pick(6*time.Second, wallTime()), refuse: codexLimit})
	w.submits(soak.Pick(6, 20))
	a := w.closed()
	w.wantNamed("status", w.want(0, "status").out, a)
	w.completes(oneGate)
}

// Pulling agents get and report the same.
func TestALimitIsAGateForAgentsThatPull(t *testing.T) {
	w := newBox(t).wall("codex", limit{after: 3, length: soak.Pick(6*time.Second, wallTime()), refuse: codexLimit}, "--pull")
	w.submits(soak.Pick(6, 20))
	w.wantClosed(w.closed())
	w.completes(oneGate)
}

// The limit is met before the first answer: no run has begun, and each task begins once.
func TestALimitIsAGateBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel() // so that other tests do not wait for its parts
	for _, login := range []string{"claude", "codex"} {
		t.Run(login, func(t *testing.T) {
			w := newBox(t).wall(login, limit{length: 5 * time.Second, refuse: map[string]func(reset, now time.Time) model.Reply{"claude": unified, "codex": codexLimit}[login]})
			w.submits(3)
			w.completes(oneGate)
		})
	}
}

// The run that goes first meets the limit again, and the others keep waiting.
func TestTheFirstRequestMeetsALimitAgain(t *testing.T) {
	w := newBox(t).wall("codex", limit{after: 3, length: 4 * time.Second, again: 1, refuse: codexLimit})
	w.submits(5)
	w.completes(expected{refused: wallAgents + 1, first: 1})
	parks := 0
	for _, id := range w.ids {
		parks += w.task(id).Parks
	}
	if parks != wallAgents+1 {
		t.Errorf("runs were parked %d times", parks)
	}
}

// A key is refused with only a Retry-After. If it is short, the CLI waits itself. If it is
// long, the CLI reports its own retry time, up to a quarter later: so one may come early.
func TestABareLimitWithRetryAfterIsAGate(t *testing.T) {
	soak.Only(t, "a CLI that reports a Retry-After otherwise")
	w := newBox(t).wall("claude with a key", limit{after: 3, length: wallTime(), refuse: bare(true)})
	w.submits(20)
	w.completes(expected{refused: wallAgents + 1, first: 1})
}

// A key is refused without a time. The CLI retries once, the account closes for a
// guessed time, and a user opens it. With SIGNALBOX_SOAK=1 no user does.
func TestABareLimitIsAGate(t *testing.T) {
	w := newBox(t).wall("claude with a key", limit{after: 3, length: 10 * time.Second, refuse: bare(false)})
	w.submits(soak.Pick(3, 20))
	a := w.closed()
	if a.Source != "guess" || a.Until == nil || a.Until.Sub(*a.Since) > 70*time.Second {
		t.Fatalf("%+v", a)
	}
	want := expected{refused: 2 * wallAgents, first: 1, opens: *a.Until}
	if !soak.On() {
		want.opens = w.p.lift()
		w.want(0, "accounts", "open", a.Name)
		want.first = wallAgents
	}
	w.completes(want)
}

// opencode does not report a limit, and would sleep through it in its slot. The run is ended
// within a minute, and continues when the account is open.
func TestALimitThatTheCLISleepsThroughIsAGate(t *testing.T) {
	soak.Only(t, "a CLI that keeps its slot while it sleeps")
	w := newBox(t).wall("opencode", limit{agents: 1, after: 1, length: 5 * time.Minute, refuse: bare(true)})
	w.submits(2)
	a := w.closed()
	list, _ := w.p.of()
	if took := time.Since(list[1].at); took > time.Minute {
		t.Errorf("its slot was given back %s after the limit was met", took)
	}
	w.p.lift()
	w.want(0, "accounts", "open", a.Name)
	w.completes(expected{refused: 2, first: 1})
}
