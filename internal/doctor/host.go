package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentaddr"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// Open files below which the check warns and fails: each stream, agent and call holds one, and the director
// allows 2,000 open streams.
const (
	fewFiles    = 4096
	tooFewFiles = 256
)

// jumped is the smallest change of the calendar time that is reported.
const jumped = 2 * time.Second

// Host checks the limits that the system sets this process, and its clock. started is the time.Now at which
// the process started.
func Host(started time.Time) CheckFunc {
	return func(context.Context, bool) []api.Check {
		out := append([]api.Check{openFiles()}, bounds(groupOf())...)
		now := time.Now()
		return append(out, clock(now.Sub(started), now.Round(0).Sub(started.Round(0))))
	}
}

func openFiles() api.Check {
	most, err := mostFiles()
	if err != nil {
		return warning(areaHost, "use a system that reports it", "the limit on open files cannot be read: %v", err)
	}
	return filesCheck(most)
}

func filesCheck(most uint64) api.Check {
	const cure = "raise LimitNOFILE= of the unit, or ulimit -n: each stream, agent and call holds a file"
	switch {
	case most < tooFewFiles:
		return failure(areaHost, cure, "the director may open %d files", most)
	case most < fewFiles:
		return warning(areaHost, cure, "the director may open %d files", most)
	}
	if most > 1<<40 {
		return fine(areaHost, "the director may open as many files as it likes")
	}
	return fine(areaHost, "the director may open %d files", most)
}

// bound is a limit of the control group that this process is in.
type bound struct {
	name, unit string
	used, most uint64
}

// bounds warns if little is left of what the control group allows.
func bounds(all []bound) []api.Check {
	var out []api.Check
	for _, b := range all {
		text := fmt.Sprintf("%d of %d %s of its control group are in use (%s)", b.used, b.most, b.unit, b.name)
		cure := "raise " + b.name + " of the unit or container: at the limit the system kills, or refuses to start, what the director runs"
		switch {
		case b.most == 0 || b.used >= b.most:
			out = append(out, failure(areaHost, cure, "%s", text))
		case b.used/9 >= b.most/10:
			out = append(out, warning(areaHost, cure, "%s", text))
		default:
			out = append(out, fine(areaHost, "%s", text))
		}
	}
	return out
}

// clock compares the time that passed by the calendar, which can be set, with the time that really passed.
func clock(went, said time.Duration) api.Check {
	off := (said - went).Round(10 * time.Millisecond)
	switch {
	case off.Abs() < jumped:
		return fine(areaClock, "the clock of the director's host was not set since the director started")
	case off < 0:
		return warning(areaClock, "let the host follow a time server; nothing fires twice, and no lease ends by it", "the clock of the director's host was set back by %s since it started", -off)
	}
	return warning(areaClock, "let the host follow a time server, unless it slept: nothing fires twice, and no lease ends by it", "the clock of the director's host is %s ahead of the time that went by since it started: it was set, or the machine slept", off)
}

// Bounds on asking agents.
const (
	askedAgents = 200
	atOnce      = 16
	askTimeout  = 3 * time.Second
	maxStatus   = 1 << 20
)

// clockOff is the smallest difference of an agent's clock that is reported. An HTTP date has whole seconds only.
const clockOff = 2 * time.Second

// Fleet is how to find and ask the agents of a director.
type Fleet struct {
	Agents  func(ctx context.Context) ([]signalbox.Agent, error)
	Token   func(a signalbox.Agent) (string, error) // the token that an agent requires
	Version string                                  // of the director
}

// answer is an agent's status, and when it came.
type answer struct {
	agent  signalbox.Agent
	status api.AgentStatus
	off    time.Duration // of its clock, beyond the uncertainty
	took   time.Duration
	err    error
}

// Agents asks each agent for its status, as the dispatcher does, and checks what the dispatcher does not
// need: its clock, its version, and its folder. It is for admins, since it names all agents.
func Agents(f Fleet) CheckFunc {
	client := &http.Client{
		Timeout: askTimeout,
		Transport: &http.Transport{
			DialContext:       (&net.Dialer{Timeout: askTimeout, Control: agentaddr.Control(true)}).DialContext,
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, admin bool) []api.Check {
		if !admin {
			return nil
		}
		rows, err := f.Agents(ctx)
		if err != nil {
			return nil // the check of the store reports it
		}
		rows = slices.DeleteFunc(rows, func(a signalbox.Agent) bool { return a.URL == "" || strings.Contains(a.Name, "@") })
		var out []api.Check
		if more := len(rows) - askedAgents; more > 0 {
			rows = rows[:askedAgents]
			out = append(out, warning(areaAgents, "signalbox agents shows what the others said last", "%d agents were not asked: there are too many", more))
		}
		return append(out, f.judge(f.askAll(ctx, client, rows))...)
	}
}

func (f *Fleet) askAll(ctx context.Context, client *http.Client, rows []signalbox.Agent) []answer {
	out := make([]answer, len(rows))
	var group sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, a := range rows {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			out[i] = f.ask(ctx, client, a)
		})
	}
	group.Wait()
	return out
}

func (f *Fleet) ask(ctx context.Context, client *http.Client, a signalbox.Agent) (got answer) {
	got.agent = a
	token, err := f.Token(a)
	if err != nil {
		got.err = err
		return got
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(a.URL, "/")+"/status", http.NoBody)
	if err != nil {
		got.err = err
		return got
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	sent := time.Now()
	asking := *client
	asking.Transport = handshake.ToAgent(client.Transport, a.URL, token, a.Proof)
	resp, err := asking.Do(req)
	if err != nil {
		got.err = err
		return got
	}
	defer resp.Body.Close()
	got.took = time.Since(sent)
	got.off = offset(resp.Header.Get("Date"), sent, got.took)
	if resp.StatusCode != http.StatusOK {
		got.err = fmt.Errorf("it answered %d", resp.StatusCode)
		return got
	}
	got.err = json.NewDecoder(io.LimitReader(resp.Body, maxStatus)).Decode(&got.status)
	return got
}

// offset is how far off a clock is that gave date in answer to a request. The duration of the request and the
// whole seconds of the date count in its favour.
func offset(date string, sent time.Time, took time.Duration) time.Duration {
	at, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	earliest, latest := sent.Add(-time.Second), sent.Add(took)
	switch {
	case at.Before(earliest):
		return at.Sub(earliest)
	case at.After(latest):
		return at.Sub(latest)
	}
	return 0
}

// judge reports what is wrong in the agents' answers.
func (f *Fleet) judge(answers []answer) []api.Check {
	var out []api.Check
	homes := map[string][]string{}
	asked := 0
	for _, a := range answers {
		name := a.agent.Name
		if off := a.off.Round(100 * time.Millisecond); off.Abs() >= clockOff {
			out = append(out, warning(areaClock, "let its host follow a time server; times in its log and its history are off by that", "the clock of agent %s is %s off the director's", name, off))
		}
		if a.err != nil {
			continue // the dispatcher asks it, too, and reports why it is down
		}
		asked++
		if v := a.status.Version; a.status.Name != "" && v != f.Version {
			out = append(out, warning(areaAgents, "bring both to one version; a rolling upgrade may take a while", "agent %s has version %q, this director %q", name, v, f.Version))
		}
		if dir := a.status.WorkDir; dir != "" && a.status.AgentKind != "demo" && a.status.Workspace != "worktree" {
			at := hostOf(a.agent.URL) + " in " + dir
			homes[at] = append(homes[at], name)
		}
	}
	for at, names := range homes {
		if len(names) > 1 {
			slices.Sort(names)
			out = append(out, warning(areaAgents, "give each a --workdir of its own, or --workspace worktree, unless they are to share it: what one edits, the other sees half done", "agents %s work in one folder, on %s", strings.Join(names, " and "), at))
		}
	}
	slices.SortFunc(out, func(a, b api.Check) int { return cmp.Compare(a.Text, b.Text) })
	if asked > 0 && len(out) == 0 {
		out = append(out, fine(areaAgents, "asked: %d; their clocks, versions and folders are fine", asked))
	}
	return out
}

// hostOf is the host of an agent's URL; all names of this host are equal.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return "the director's host"
	}
	return host
}
