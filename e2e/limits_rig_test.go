package e2e_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// walled is one or several directors, with agents that run a real CLI and use one
// login, which reaches its limit.
type walled struct {
	*box
	kind      string
	login     string // a key of logins
	p         *provider
	url       string // of a living director
	front     string // the address that agents use
	directors []*role
	agents    []*role
	c         *client.Client
	j         *journal
	ids       []string
}

// wallAgents is how many agents use the login: as many runs may be in flight when
// it reaches its limit.
const wallAgents = 2

// wallTime is how long the limit lasts.
func wallTime() time.Duration { return soak.Pick(10*time.Second, 30*time.Second) }

// logins are the variables from which a CLI takes its login.
var logins = map[string]string{"claude": "CLAUDE_CODE_OAUTH_TOKEN", "claude with a key": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "opencode": "OPENAI_API_KEY"}

// eitherLogin is for what does not depend on the CLI; other tests cover their messages
// about limits: codex, which needs half of the CPU time to start, and in make soak Claude
// Code.
func eitherLogin(l limit) (login string, _ limit) {
	l.refuse = codexLimit
	if soak.On() {
		l.refuse = unified
	}
	return soak.Pick("codex", "claude"), l
}

// wall starts one director and its agents, with additional arguments.
func (b *box) wall(login string, l limit, args ...string) *walled {
	b.t.Helper()
	w := b.behindWall(login, l)
	w.addDirector("director", b.data)
	w.begin(w.url, args...)
	return w
}

// behindWall is what exists before any director.
func (b *box) behindWall(login string, l limit) *walled {
	b.t.Helper()
	kind, _, _ := strings.Cut(login, " ")
	l.login, l.agents = "sk-ant-oat01-the-login-that-is-limited", cmp.Or(l.agents, wallAgents)
	w := &walled{box: b, kind: kind, login: login, p: newProvider(b.t, l)}
	b.quietCLIs()
	if err := os.Symlink(installed(b.t, kind), filepath.Join(b.bin, kind)); err != nil {
		b.t.Fatal(err)
	}
	b.vars["ANTHROPIC_BASE_URL"] = w.p.URL
	b.vars["OPENCODE_MODELS_PATH"] = b.file("models.json", "{}", 0o600)
	return w
}

func (w *walled) addDirector(name, data string, args ...string) {
	addr := freePort(w.t)
	w.url = "http://" + addr
	r := &role{b: w.box, name: name, died: deaths{}, args: append([]string{"director", "--addr", addr, "--instance", name, "--data", data}, args...)}
	r.start()
	r.p.prints("http://")
	w.directors = append(w.directors, r)
}

// begin starts the agents, with the address of a director.
func (w *walled) begin(front string, args ...string) {
	w.t.Helper()
	w.front, w.c = front, w.client(w.url)
	w.j = w.journal(w.c)
	for n := range w.p.limit.agents {
		w.add(fmt.Sprintf("%s-%d", w.kind, n), w.p.limit.login, args...)
	}
}

// add starts an agent of the CLI with a home of its own, as on a separate host: two
// daemons would take turns in the same home.
func (w *walled) add(name, login string, args ...string) {
	w.t.Helper()
	home, folder := filepath.Join(w.root, "home-"+name), filepath.Dir(w.file("work-"+name+"/README", "", 0o600))
	w.file(filepath.Join(home, ".codex", "config.toml"), fmt.Sprintf(codexConfig, w.p.URL), 0o600)
	w.file(filepath.Join(home, ".config", "opencode", "opencode.json"), strings.ReplaceAll(fmt.Sprintf(opencodeConfig, w.p.URL), "test-key", login), 0o600)
	w.file(filepath.Join(home, ".npmrc"), "offline=true\n", 0o600)
	r := &role{b: w.box, name: name, died: deaths{}, env: []string{"HOME=" + home, logins[w.login] + "=" + login}}
	r.args = w.agentLine(name, w.front, append([]string{"--kind", w.kind, "--workdir", folder}, args...))
	r.start()
	r.p.says("INFO registered")
	w.untilState(w.c, name, "idle")
	w.agents = append(w.agents, r)
}

// killed kills some processes with kill -9, and restarts them.
func (w *walled) killed(roles ...*role) {
	w.t.Helper()
	for _, r := range roles {
		r.kill()
	}
	for _, r := range roles {
		r.start()
		r.p.prints("http://")
	}
}

// submits submits n tasks, and returns once one has met the limit.
func (w *walled) submits(n int) {
	w.t.Helper()
	for i := range n {
		w.ids = append(w.ids, w.submit(w.c, api.SubmitRequest{Prompt: fmt.Sprintf("This is task %02d: say that it is done", i), Kind: w.kind}))
	}
	select {
	case <-w.p.refused:
	case <-w.ctx().Done():
		w.t.Fatal("no run met the limit")
	}
}

func (w *walled) task(id string) api.Task {
	w.t.Helper()
	task, err := w.c.Task(w.ctx(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return task
}

func (w *walled) accounts() []api.Account {
	w.t.Helper()
	got, err := w.c.Accounts(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Accounts
}

// account returns the account of the limited login; the zero Account while the first of
// its agents is not connected.
func (w *walled) account() (a api.Account) {
	w.t.Helper()
	for _, one := range w.accounts() {
		if slices.Contains(one.Agents, w.kind+"-0") {
			a = one
		}
	}
	return a
}

// closed waits until the account is closed, and every run that met the limit is parked.
func (w *walled) closed() api.Account {
	w.t.Helper()
	w.until("a closed account, and nothing in flight", func() bool {
		a := w.account()
		return a.State == "closed" && a.Parked > 0 && w.inFlight() == 0
	})
	return w.account()
}

func (w *walled) inFlight() (n int) {
	for _, id := range w.ids {
		if signalbox.State(w.task(id).State).InFlight() {
			n++
		}
	}
	return n
}

// expected is what the provider may have seen.
type expected struct {
	refused int       // maximum number of requests
	first   int       // 1: one goes first, and the others wait for its answer; more: so many CLIs may have slept through the limit themselves
	opens   time.Time // when they may begin; zero: at the reset
}

// oneGate is expected if the reset is known.
var oneGate = expected{refused: wallAgents, first: 1}

// completes waits until all tasks have ended, and checks the requests at the
// provider.
func (w *walled) completes(want expected) {
	w.t.Helper()
	for _, id := range w.ids {
		if task := w.completed(w.c, id); task.Attempts != 0 {
			w.t.Errorf("%s: %d attempts were spent", id, task.Attempts)
		}
	}
	list, reset := w.p.of()
	w.wantFewRefused(list, want.refused)
	if want.opens.IsZero() {
		want.opens = reset
	}
	w.wantOneFirst(list, want)
	w.wantSameConversations(list)
	w.wantOwnFirst()
}

// wantOwnFirst: after its run was parked, an agent first continues that run.
func (w *walled) wantOwnFirst() {
	w.t.Helper()
	parked := map[string]string{}
	for _, e := range w.j.all() {
		id := parked[e.Agent]
		switch {
		case e.Kind == "park":
			parked[e.Agent] = e.QueueID
		case e.Kind == "claim" && id != "":
			if e.QueueID != id {
				w.t.Errorf("%s was parked, and its agent took %s first: %s", id, e.QueueID, whole(w.j.all(), id))
			}
			delete(parked, e.Agent)
		}
	}
}

func (w *walled) wantFewRefused(list []modelCall, most int) {
	w.t.Helper()
	n := 0
	for _, a := range list {
		if a.refused {
			n++
		}
	}
	w.t.Logf("%d requests, %d of them refused", len(list), n)
	if n > most {
		w.t.Errorf("%d requests were refused, want %d at most\n%s", n, most, w.course(list))
	}
}

// wantOneFirst: soon after the reset there is one request, and the others follow
// after its answer.
func (w *walled) wantOneFirst(list []modelCall, want expected) {
	w.t.Helper()
	after := slices.DeleteFunc(slices.Clone(list), func(a modelCall) bool { return a.refused || a.said != "" })
	if len(after) == 0 {
		w.t.Fatalf("there was no request after the reset\n%s", w.course(list))
	}
	w.wantPrompt(after[0].at, want.opens)
	if want.first == 1 && len(after) > 1 && after[1].at.Before(w.p.firstAnswer()) {
		w.t.Errorf("another did not wait for the answer to the one that went first\n%s", w.course(list))
	}
}

// wantPrompt: the first request arrives within five seconds after the account opens. In
// make test, where the machine may be busy, and with opencode, which takes seconds to
// start, it is enough that a run begins: the rest depends on the CLI.
func (w *walled) wantPrompt(request, opens time.Time) {
	w.t.Helper()
	first := request
	if !soak.On() || w.kind == "opencode" {
		for _, e := range w.j.all() {
			if e.Kind == "claim" && !e.At.Before(opens.Truncate(time.Millisecond)) && e.At.Before(first) {
				first = e.At
			}
		}
	}
	if late := first.Sub(opens); late < -time.Millisecond || late > 5*time.Second {
		w.t.Errorf("the first after the account opened came after %s, its request after %s", late, request.Sub(opens))
	}
}

// wantSameConversations: each task has one conversation, which begins once. A run that
// met the limit continues it and does not repeat the prompt.
func (w *walled) wantSameConversations(list []modelCall) {
	w.t.Helper()
	sessions, said, refused := map[string]string{}, map[string][]string{}, map[string]bool{}
	for _, a := range list {
		if was, ok := sessions[a.task]; ok && was != a.session || a.task == "" || a.session == "" {
			w.t.Errorf("%q: conversation %q, before %q\n%s", a.task, a.session, was, w.course(list))
		}
		sessions[a.task] = a.session
		for _, words := range slices.Concat(said[a.task], []string{"This is " + a.task}) {
			if n := strings.Count(a.text, words); n != 1 {
				w.t.Errorf("%q is %d times in a request of %s\n%s\n%s", words, n, a.task, tail(a.text), w.course(list))
			}
		}
		if a.said != "" {
			said[a.task] = append(said[a.task], a.said)
		}
		refused[a.task] = refused[a.task] || a.refused
	}
	if len(sessions) != len(w.ids) || !slices.Contains(slices.Collect(maps.Values(refused)), true) {
		w.t.Errorf("%d conversations of %d tasks, interrupted: %v\n%s", len(sessions), len(w.ids), refused, w.course(list))
	}
}

// course lists all requests with their times, for a failed test.
func (w *walled) course(list []modelCall) string {
	var b strings.Builder
	_, reset := w.p.of()
	for _, a := range list {
		fmt.Fprintf(&b, "%8.3f s from the reset: %s, conversation %s, refused: %v\n", a.at.Sub(reset).Seconds(), a.task, a.session, a.refused)
	}
	for _, e := range w.j.all() {
		if e.Kind == "account" || e.QueueID != "" && e.Kind != "submit" {
			fmt.Fprintf(&b, "%8.3f s from the reset: %s %s %s %s\n", e.At.Sub(reset).Seconds(), e.Kind, e.QueueID, e.Agent, e.Message)
		}
	}
	return b.String()
}

// runEnds are the ends of the agents' runs so far, as reported by the agents.
func (w *walled) runEnds() (ends []time.Time) {
	for _, l := range executions(w.t, w.execLog()) {
		if l.Event == "end" {
			ends = append(ends, l.At)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends
}
