package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// A user ends a parked task, lets another run anyway, opens the account early, and closes
// it, until a given time and until further notice.
func TestAnAccountIsOpenedAndClosedByHand(t *testing.T) {
	w := newBox(t).wall(eitherLogin(limit{agents: 1, after: 1, length: time.Hour}))
	w.submits(3)
	a := w.closed()
	parked := slices.IndexFunc(w.ids, func(id string) bool { return w.task(id).State == "parked" })
	cancelled, rest := w.ids[parked], slices.Delete(slices.Clone(w.ids), parked, parked+1)
	w.want(0, "cancel", cancelled)
	if task := w.end(w.c, cancelled); task.State != "cancelled" || task.Message == "" {
		t.Errorf("the parked task ended as %s: %s", task.State, task.Message)
	}
	if a = w.account(); a.State != "closed" || a.Parked != 0 || a.Waiting != 2 {
		t.Errorf("after the cancel: %+v", a)
	}
	w.p.lift()
	asked, _ := w.p.of()
	w.want(0, "unpark", rest[1])
	w.completed(w.c, rest[1])
	if a = w.account(); a.State != "closed" || a.Waiting != 1 {
		t.Errorf("after one has run anyway: %+v", a)
	}
	w.want(0, "accounts", "open", a.Name)
	w.completed(w.c, rest[0])
	all, _ := w.p.of()
	if later := all[len(asked):]; slices.ContainsFunc(later, func(a modelCall) bool { return a.task == asked[0].task }) {
		t.Errorf("the task that was cancelled went on\n%s", w.course(all))
	}

	opens := time.Now().Add(3 * time.Second).Truncate(time.Second)
	w.want(0, "accounts", "close", a.Name, "--until", opens.UTC().Format(time.RFC3339))
	id := w.held("task 10", &opens)
	w.completed(w.c, id)
	all, _ = w.p.of()
	w.wantPrompt(all[len(all)-1].at, opens)

	w.want(0, "accounts", "close", a.Name)
	id = w.held("task 11", nil)
	w.want(0, "accounts", "open", a.Name)
	w.completed(w.c, id)
	if got := w.cli("accounts", "open", "no-such-account"); got.code == 0 || !strings.Contains(got.err, "signalbox accounts") {
		t.Errorf("of an account that is not there: exit code %d, %s", got.code, got.err)
	}
}

// held submits a task, and expects it to wait for the account: until a given time, or
// until someone opens it.
func (w *walled) held(name string, until *time.Time) string {
	w.t.Helper()
	id := w.submit(w.c, api.SubmitRequest{Prompt: "This is " + name + ": say that it is done", Kind: w.kind})
	task, a := w.task(id), w.account()
	f := task.WaitingFor
	if a.State != "closed" || task.State != "pending" || f == nil || f.Kind != "account" || f.Name != a.Name || (until == nil) != (f.Until == nil) || until != nil && !f.Until.Equal(*until) {
		w.t.Errorf("%s is %s, and waits for %+v; the account is %+v", name, task.State, f, a)
	}
	return id
}

// A login that expires in the middle of a run needs a user: everything waits, and
// continues where it was once someone has logged in and opened the account.
func TestALoginThatExpiresIsAGate(t *testing.T) {
	agents := soak.Pick(1, wallAgents)
	w := newBox(t).wall("claude", limit{agents: agents, after: agents, length: time.Hour, refuse: expired})
	w.submits(soak.Pick(2, 20))
	w.until("the account is signed out, and nothing in flight", func() bool {
		a := w.account()
		return a.State == "signed_out" && a.Parked > 0 && w.inFlight() == 0
	})
	a := w.account()
	for _, id := range w.ids {
		if f := w.task(id).WaitingFor; f == nil || f.Kind != "account" || f.Name != a.Name || f.Until != nil || !strings.Contains(f.Text, "log in") {
			t.Errorf("%s waits for %+v", id, f)
		}
	}
	for _, said := range []string{w.want(0, "status").out, w.want(0, "why", w.ids[len(w.ids)-1]).out, w.want(0, "accounts").out} {
		if !strings.Contains(said, a.Name) || !strings.Contains(strings.ReplaceAll(said, "_", " "), "signed out") {
			t.Errorf("the text does not ask the person to log in:\n%s", said)
		}
	}
	lifted := w.p.lift()
	w.want(0, "accounts", "open", a.Name)
	w.completes(expected{refused: 2 * agents, first: agents, opens: lifted})
}

// An overloaded provider does not affect the account: a run that meets it waits a little
// and continues, and the account stays open.
func TestAnOverloadedProviderIsTriedAgain(t *testing.T) {
	soak.Only(t, "a provider that is overloaded for a moment, and closes an account")
	b := newBox(t)
	b.vars["CLAUDE_CODE_MAX_RETRIES"] = "0" // the CLI would retry for minutes
	w := b.wall("claude", limit{after: 3, length: time.Second, refuse: overloaded})
	w.submits(2)
	for _, id := range w.ids {
		if task := w.completed(w.c, id); task.Attempts != 0 {
			t.Errorf("%s: %d attempts were spent", id, task.Attempts)
		}
	}
	list, _ := w.p.of()
	w.wantSameConversations(list)
	if slices.ContainsFunc(w.j.all(), func(e api.Event) bool { return e.Kind == "account" }) || w.account().State != "open" {
		t.Errorf("the account was closed: %+v", w.account())
	}
}

// Schedules leave an account's reserve to people.
func TestTheRestOfAnAccountIsKeptForPeople(t *testing.T) {
	w := newBox(t).behindWall("claude", limit{agents: 1})
	w.p.Use(func(r model.Request) model.Reply { return model.Reply{Text: "Done.", Header: used(0.85)} })
	w.addDirector("director", w.data, "--config", w.file("accounts.yaml", "accounts:\n  team: {reserve: {schedules: 80}}\n", 0o600))
	w.front, w.c = w.url, w.client(w.url)
	w.add("claude-0", w.p.limit.login, "--account", "team")
	w.completed(w.c, w.submit(w.c, api.SubmitRequest{Prompt: "hello", Kind: "claude"}))
	w.until("the director knows the usage", func() bool {
		a := w.account()
		return a.Name == "team" && a.State == "open" && slices.ContainsFunc(a.Windows, func(one api.AccountWindow) bool { return one.Name == "five_hour" && one.UsedPercent == 85 })
	})
	if _, err := w.c.CreateSchedule(w.ctx(), api.NewSchedule{Name: "nightly", CronExpression: "0 3 1 1 *", Prompt: "tidy up", Kind: "claude"}); err != nil {
		t.Fatal(err)
	}
	w.want(0, "schedules", "trigger", "nightly")
	found, err := w.c.Search(w.ctx(), "job:nightly", client.SearchOptions{})
	if err != nil || len(found.Tasks) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	id := found.Tasks[0].QueueID
	w.completed(w.c, w.submit(w.c, api.SubmitRequest{Prompt: "and a person's", Kind: "claude"}))
	task := w.task(id)
	if f := task.WaitingFor; task.State != "pending" || f == nil || f.Kind != "account" || f.Name != "team" || !strings.Contains(f.Text, "85 % of five_hour") {
		t.Errorf("the schedule's task is %s and waits for %+v", task.State, f)
	}
	if why := w.want(0, "why", id).out; !strings.Contains(why, "team") || !strings.Contains(why, "people") {
		t.Errorf("why: %s", why)
	}
	w.p.Use(func(r model.Request) model.Reply { return model.Reply{Text: "Done.", Header: used(0.1)} })
	w.completed(w.c, w.submit(w.c, api.SubmitRequest{Prompt: "one more, of a new window", Kind: "claude"}))
	w.completed(w.c, id)
}

// A thousand tasks at a closed gate cost the idle director as much CPU time as none.
func TestTasksAtAClosedGateCostNothing(t *testing.T) {
	const tasks = 1000
	b := newBox(t)
	b.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = strconv.Itoa(2 * tasks)
	b.vars["ANTHROPIC_API_KEY"] = "sk-ant-the-key-of-nobody"
	b.fakeClaude()
	w := &walled{box: b, kind: "claude"}
	w.addDirector("director", b.data)
	w.c = b.client(w.url)
	b.agent("claude-0", w.url, "--kind", "claude")
	b.untilState(w.c, "claude-0", "idle")
	b.until("the director knows what it spends", func() bool { return len(w.accounts()) == 1 })
	opens := time.Now().Add(time.Hour).UTC()
	b.want(0, "accounts", "close", w.account().Name, "--until", opens.Format(time.RFC3339))
	d, length := w.directors[0].p, soak.Pick(3*time.Second, 10*time.Second)
	empty := min(d.used(length), d.used(length))
	for i := range tasks {
		b.submit(w.c, api.SubmitRequest{Prompt: fmt.Sprintf("task %d", i), Kind: "claude"})
	}
	if a := w.account(); a.State != "closed" || a.Waiting != tasks {
		t.Fatalf("%+v", a)
	}
	// First the work left by the submits is finished.
	var full time.Duration
	for range 5 {
		if full = d.used(length); full <= empty+length/100 {
			break
		}
	}
	t.Logf("in %s: %s with an empty queue, %s with %d tasks at a closed gate", length, empty, full, tasks)
	if full > empty+length/100 {
		t.Errorf("%d tasks at a closed gate cost %s of processor time in %s, an empty queue %s", tasks, full, length, empty)
	}
}

// used is the CPU time that a process uses in a period.
func (p *process) used(length time.Duration) time.Duration {
	p.t.Helper()
	before := p.processorTime()
	time.Sleep(length) // this period is measured
	return p.processorTime() - before
}

// processorTime is the CPU time that the process has used so far, to a hundredth
// of a second.
func (p *process) processorTime() time.Duration {
	p.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the third field on
	var ticks int64
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
