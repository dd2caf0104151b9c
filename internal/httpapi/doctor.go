package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// DoctorCheck checks something that the director depends on. Details for admins only,
// such as paths, are included if admin is set.
type DoctorCheck func(ctx context.Context, admin bool) []api.Check

// doctorTimeout limits all checks together: a check that hangs is a finding.
const doctorTimeout = 20 * time.Second

// doctorHandlers run the checks of doctor.
type doctorHandlers struct {
	checks    []DoctorCheck
	toolsOnly bool
	tools     Tools // nil: no tools
	engine    *engine.Engine
	accounts  *accountHandlers
	identity  *identity.Keeper
	directors *directorHandlers
	forward   *forward.Forwarder
	draining  *atomic.Bool
	version   string
	started   time.Time
	log       *slog.Logger
}

// doctor is GET /api/doctor. A failed check is a finding, so that the answer is always
// 200.
func (h *doctorHandlers) doctor(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), doctorTimeout)
	defer cancel()
	c := access.CallerOf(r)
	admin := h.toolsOnly || c.Who.Has(signalbox.ScopeAdmin)
	out := api.Doctor{Checks: []api.Check{h.checkSelf()}}
	add := func(checks ...api.Check) { out.Checks = append(out.Checks, checks...) }
	add(h.checkAccess())
	if h.toolsOnly {
		add(fine("store", "tool tasks are kept in memory: they end with the gateway"))
	} else {
		add(h.checkStore(ctx, c)...)
		add(h.checkWaits(ctx)...)
		add(h.directors.checkDirectors(ctx)...)
		add(h.checkAgents(c.Who)...)
		add(h.checkAccounts(ctx, c.Who)...)
	}
	add(h.checkTools(ctx, admin)...)
	for _, check := range h.checks {
		add(check(ctx, admin)...)
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// Findings.
func fine(area, format string, args ...any) api.Check {
	return api.Check{Area: area, State: "ok", Text: fmt.Sprintf(format, args...)}
}

func warning(area, cure, format string, args ...any) api.Check {
	return api.Check{Area: area, State: "warn", Text: fmt.Sprintf(format, args...), Cure: cure}
}

func failure(area, cure, format string, args ...any) api.Check {
	return api.Check{Area: area, State: "fail", Text: fmt.Sprintf(format, args...), Cure: cure}
}

func (h *doctorHandlers) checkSelf() api.Check {
	up := h.engine.Now().Sub(h.started).Truncate(time.Second)
	if h.draining.Load() {
		return warning("director", "wait for its end and start it again", "it is about to stop: it stores submits and makes no claims")
	}
	return fine("director", "version %s, up for %s", h.version, max(0, up))
}

func (h *doctorHandlers) checkAccess() api.Check {
	if h.identity.Open() {
		cure := "signalbox tokens create admin --scope admin closes it"
		if h.toolsOnly {
			cure = "start it with --token-file FILE"
		}
		return warning("access", cure, "it is open: every program of this machine has every right")
	}
	return fine("access", "it is closed: callers need a token or a login")
}

// checkStore checks the store and, if it answers, the queue in it.
func (h *doctorHandlers) checkStore(ctx context.Context, c access.Caller) []api.Check {
	const cure = "see the director's log, and whether the disk is full"
	info := h.engine.Info()
	counts, err := h.engine.Read().Counts(ctx)
	if err != nil {
		h.log.Error("store does not answer", "error", err)
		return []api.Check{failure("store", cure, "the store (%s) does not answer", info.Kind)}
	}
	pauses, err := h.engine.Read().Pauses(ctx)
	if err != nil {
		h.log.Error("store does not answer", "error", err)
		return []api.Check{failure("store", cure, "the store (%s) does not answer", info.Kind)}
	}
	return append([]api.Check{checkGrade(info), h.checkDepth(counts), h.checkStarts(counts)}, checkPauses(view.VisiblePauses(pauses, c.Who))...)
}

// checkGrade reports how durable the store is. A store that may lose acknowledged tasks is a
// failure, even if it was configured so.
func checkGrade(info store.Info) api.Check {
	text := fmt.Sprintf("%s, schema %d, durability %s: %s", info.Kind, info.Schema, info.Grade, info.Durability)
	switch info.Grade {
	case store.GradeNone:
		return warning("store", "start the director with --store sqlite:", "%s: nothing outlives the director", info.Kind)
	case store.GradeWeak:
		return failure("store", "set the server as it says, and start the director again; docs/scaling.md has the settings", "%s", text)
	}
	return fine("store", "%s", text)
}

// checkDepth compares the number of waiting tasks with the limit of the backlog.
func (h *doctorHandlers) checkDepth(counts store.Counts) api.Check {
	const cure = "raise queue.max_size, add agents, or cancel what is no longer needed"
	waiting, most := counts.Limits[signalbox.LimitWork], h.engine.Options().MaxSize
	return checkFill("queue", cure, fmt.Sprintf("%d of %d places of the backlog are taken", waiting, most), "submits", waiting, most)
}

// checkFill compares what waits with its limit. It warns if less than a fifth is left.
func checkFill(area, cure, text, refused string, waiting, most int) api.Check {
	switch {
	case waiting >= most:
		return failure(area, cure, "%s: %s are refused", text, refused)
	case waiting*5 >= most*4:
		return warning(area, cure, "%s", text)
	}
	return fine(area, "%s", text)
}

// checkStarts checks for tasks that cannot start because no agent is up or queues are
// paused.
func (h *doctorHandlers) checkStarts(counts store.Counts) api.Check {
	live := h.engine.LiveAgents()
	up := agentCounts(withoutExecutors(live)).Up
	waiting := counts.Pending - counts.Queues[signalbox.QueueCommands] - counts.Queues[signalbox.QueueCalls]
	if waiting > 0 && up == 0 {
		return failure("queue", "signalbox agent starts one, signalbox up one for each coding CLI", "no agent is up, and tasks wait: %d", waiting)
	}
	running := 0
	for _, n := range counts.InFlight {
		running += n
	}
	return fine("queue", "waiting: %d, under way: %d", counts.Pending, running)
}

func checkPauses(pauses []signalbox.Pause) []api.Check {
	var out []api.Check
	for _, p := range pauses {
		text := "all queues are paused"
		cure := "signalbox resume"
		if p.Queue != "" {
			text, cure = "the queue "+p.Queue+" is paused", cure+" "+p.Queue
		}
		if p.UntilMS != 0 {
			text += " until " + time.UnixMilli(p.UntilMS).UTC().Format(time.RFC3339)
		}
		if p.Reason != "" {
			text += ": " + p.Reason
		}
		out = append(out, warning("queue", cure, "%s", text))
	}
	return out
}

// checkAgents checks the agents that the caller may see.
func (h *doctorHandlers) checkAgents(who signalbox.Principal) []api.Check {
	var out []api.Check
	var up []string
	for _, a := range withoutExecutors(h.engine.LiveAgents()) {
		switch {
		case !who.MayUse(a.Name):
		case a.Up:
			up = append(up, a.Name)
			if a.Full != "" {
				out = append(out, warning("agents", "signalbox workspaces discard NAME removes a worktree", "agent %s takes no tasks: %s", a.Name, a.Full))
			}
		default:
			out = append(out, downAgent(a))
		}
	}
	slices.Sort(up)
	switch {
	case len(up) > 0:
		return append([]api.Check{fine("agents", "%d up: %s", len(up), strings.Join(up, ", "))}, out...)
	case len(out) == 0:
		return []api.Check{warning("agents", "signalbox agent starts one, signalbox up one for each coding CLI", "there is none")}
	}
	return out
}

func downAgent(a engine.LiveAgent) api.Check {
	text := "agent " + a.Name + " is down"
	if !a.LastHeard.IsZero() {
		text += ", last heard from at " + a.LastHeard.UTC().Format(time.RFC3339)
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return warning("agents", "start it again, or signalbox agents remove "+a.Name, "%s", text)
}

// untried is how long after its reopening time a closed account is reported: a director
// should try it within a second.
const untried = time.Minute

// checkAccounts checks the accounts that the caller may see.
func (h *doctorHandlers) checkAccounts(ctx context.Context, who signalbox.Principal) []api.Check {
	all, err := h.accounts.accounts(ctx, who)
	if err != nil {
		return nil // the look at the store says it
	}
	var out []api.Check
	var open []string
	for i := range all {
		if all[i].State == string(signalbox.AccountOpen) {
			open = append(open, all[i].Name)
		} else {
			out = append(out, h.checkAccount(&all[i]))
		}
	}
	if len(open) > 0 {
		out = append([]api.Check{fine("accounts", "%d open: %s", len(open), strings.Join(open, ", "))}, out...)
	}
	return out
}

// checkAccount checks an account that is not open.
func (h *doctorHandlers) checkAccount(a *api.Account) api.Check {
	tries := "signalbox accounts open " + a.Name + " tries at once"
	text := fmt.Sprintf("%s; tasks that wait for it: %d", a.Text, a.Parked+a.Waiting)
	switch {
	case a.State == string(signalbox.AccountSignedOut):
		where := ""
		if len(a.Agents) > 0 {
			where = " of " + strings.Join(a.Agents, ", ")
		}
		return failure("accounts", "log in again on the host"+where+", then: signalbox accounts open "+a.Name, "%s", text)
	case a.State == string(signalbox.AccountTrying):
		return fine("accounts", "%s", text)
	case a.Until == nil:
		return warning("accounts", "signalbox accounts open "+a.Name, "%s", text)
	case h.engine.Now().Sub(*a.Until) > untried:
		return failure("accounts", "see the director's log; "+tries, "%s, which is over, and no director tries it", text)
	case a.Parked+a.Waiting == 0:
		return fine("accounts", "%s", text)
	}
	return warning("accounts", "they go on by themselves then; "+tries, "%s", text)
}

// checkTools checks the servers of tools, and the executor of tool tasks.
func (h *doctorHandlers) checkTools(ctx context.Context, admin bool) []api.Check {
	if h.tools == nil {
		return nil
	}
	return append(checkServers(h.tools.Servers(), admin), h.checkExecutors(ctx)...)
}

// checkServers checks the servers of tools. Their error texts may contain paths and
// addresses, and are only for admins.
func checkServers(servers []gateway.Server, admin bool) []api.Check {
	const cure = "see signalbox tools servers"
	var out []api.Check
	ready := 0
	for _, s := range servers {
		because := ""
		if admin && s.Error != "" {
			because = ": " + s.Error
		}
		switch s.State {
		case gateway.StateReady:
			ready++
			if s.Error != "" {
				out = append(out, warning("tools", cure, "server %s is ready, with a fault%s", s.Name, because))
			}
		case gateway.StateFailed:
			out = append(out, warning("tools", cure+"; it is tried again by itself", "server %s has failed%s", s.Name, because))
		case gateway.StateStarting, gateway.StateStopped:
			out = append(out, warning("tools", cure, "server %s is %s", s.Name, s.State))
		}
	}
	return append([]api.Check{fine("tools", "%d of %d servers are ready", ready, len(servers))}, out...)
}

// checkExecutors checks the director's own executor, the calls that wait for it, and
// slots that hang.
func (h *doctorHandlers) checkExecutors(ctx context.Context) []api.Check {
	counts, err := h.engine.Read().Counts(ctx)
	if err != nil {
		return nil // the look at the store says it
	}
	var out []api.Check
	for _, a := range h.engine.LiveAgents() {
		kind, own := signalbox.ExecutorKind(a.Name)
		if !own || !h.forward.OwnExecutor(a.Name) { // each director checks its own
			continue
		}
		if a.Message != "" {
			out = append(out, warning("tools", "see the director's log; a restart of the machine ends what hangs in the system", "%s: %s", kind, a.Message))
		}
		if kind == signalbox.ExecutorCommands {
			out = append(out, h.checkCommands(counts.Limits[signalbox.LimitCommands], a))
		}
	}
	return out
}

// checkCommands compares the waiting commands with commands.max_waiting, like checkDepth
// for the backlog.
func (h *doctorHandlers) checkCommands(waiting int, a engine.LiveAgent) api.Check {
	const cure = "raise commands.max_waiting or commands.max_concurrent, or cancel what is no longer needed: signalbox tools tasks lists it"
	text := fmt.Sprintf("%d of %d command slots are taken", a.InUse, a.Slots)
	most := h.engine.Options().MaxCommands
	if most == 0 {
		return fine("tools", "%s, %d commands wait", text, waiting)
	}
	return checkFill("tools", cure, fmt.Sprintf("%s, %d of at most %d commands wait", text, waiting, most), "calls", waiting, most)
}

const (
	// passedOver is how long the first task of a queue may wait although a slot is
	// free before it is reported: a claim takes milliseconds.
	passedOver = 10 * time.Second
	// recheckDelay is the time until such a task is checked once more.
	recheckDelay = time.Second
	// maxCheckedQueues limits the queues that are checked.
	maxCheckedQueues = 50
)

// checkWaits checks for tasks that no agent takes although all their gates are open
// (design §4, 9): the first of each line, with the same gates as why.
func (h *doctorHandlers) checkWaits(ctx context.Context) []api.Check {
	shot, err := h.engine.Read().Snapshot(ctx, 1)
	if err != nil {
		return nil // the look at the store says it
	}
	var over []string
	for _, queue := range slices.Sorted(maps.Keys(shot.Heads)) {
		if heads := shot.Heads[queue]; len(heads) > 0 && len(over) < maxCheckedQueues && h.passedOver(ctx, &heads[0]) {
			over = append(over, heads[0].ID)
		}
	}
	if len(over) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(recheckDelay):
	}
	var out []api.Check
	for _, id := range over {
		t, err := h.engine.Read().Task(ctx, id)
		if err == nil && h.passedOver(ctx, &t) {
			out = append(out, failure("queue", "see the director's log; a restart of the director takes it up", "task %s has waited for %s in %s, and no agent takes it although all its gates are open",
				t.ID, h.engine.Now().Sub(t.EnqueuedAt).Truncate(time.Second), t.Queue))
		}
	}
	return out
}

// passedOver reports whether a task could have started a while ago.
func (h *doctorHandlers) passedOver(ctx context.Context, t *signalbox.Task) bool {
	if t.State != signalbox.Pending || !t.Ready || h.engine.Now().Sub(t.EnqueuedAt) < passedOver || h.draining.Load() {
		return false
	}
	w, err := h.engine.Why(ctx, t.ID)
	return err == nil && len(w.Gates) > 0 && !slices.ContainsFunc(w.Gates, func(g engine.Gate) bool { return !g.OK })
}
