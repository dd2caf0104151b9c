package httpapi

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentaddr"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// registerAgent is POST /api/agents. A registration decides where prompts and their env
// go, so without a token only callers on this host may register agents, and only agents
// on this host.
func (h *agentHandlers) registerAgent(w http.ResponseWriter, r *http.Request) error {
	who := access.CallerOf(r)
	if !who.Trusted && !who.Loopback {
		return httpio.Refuse(signalbox.CodeForbidden, "start the director with a token and give it to the agent, or register on the director's own host",
			"agents are registered from the director's own host unless a token authenticates the caller")
	}
	var req api.RegisterAgent
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	if err := access.AllowAgent(req.Name, who.Who); err != nil {
		return err
	}
	if signalbox.IsExecutor(req.Name) {
		return signalbox.Invalid("name", "%s is the director's own executor: give the agent another name", httpio.Clip(req.Name))
	}
	source, url, err := h.checkPlace(r, &req)
	if err != nil {
		return err
	}
	req.URL = url // of the row
	known, err := h.engine.Read().Agents(r.Context())
	if err != nil {
		return err
	}
	status, err := h.registerStatus(r.Context(), known, &req)
	if err != nil {
		return err
	}
	a := signalbox.Agent{
		Name: req.Name, Kind: req.Kind, URL: req.URL, Slots: req.Slots, Fencing: req.Fencing, Proof: req.Proof && req.Token != "",
		Source: source, WorkDir: req.WorkDir, Version: req.Version,
	}
	row, err := h.engine.PutAgent(r.Context(), a, req.Token)
	if err != nil {
		return err
	}
	if err := h.auditRegistered(r, known, row); err != nil {
		return err
	}
	views, err := h.agentViews(r.Context(), []signalbox.Agent{row})
	if err != nil {
		return err
	}
	return httpio.Answer(w, status, views[0])
}

// registerStatus is 201 for a new agent, 200 for a known one. A name cannot be taken over
// while its agent answers: the new agent would get its tasks, and its runs would count as
// lost.
func (h *agentHandlers) registerStatus(ctx context.Context, known []signalbox.Agent, req *api.RegisterAgent) (int, error) {
	for _, a := range known {
		switch {
		case a.Name != req.Name:
		case a.URL == req.URL && a.Kind == req.Kind:
			return http.StatusOK, nil
		case h.sameAgent(a, req.Token): // it moved
			return http.StatusOK, nil
		case h.runs.Answers(ctx, a.Name):
			return 0, httpio.Refuse(signalbox.CodeConflict, "give one of them another --name, or stop the other first",
				"another agent named %s (%s) %s", a.Name, a.Kind, answersAt(a.URL))
		case a.Kind == req.Kind:
			return http.StatusOK, nil
		}
	}
	return http.StatusCreated, nil
}

func answersAt(url string) string {
	if _, pulls := signalbox.PullInstance(url); pulls {
		return "asks for its tasks"
	}
	return "answers at " + url
}

// auditRegistered records a new or changed agent. Agents register again at each start.
func (h *agentHandlers) auditRegistered(r *http.Request, known []signalbox.Agent, row signalbox.Agent) error {
	action := "register"
	for _, a := range known {
		if a.Name == row.Name {
			if reflect.DeepEqual(a, row) {
				return nil
			}
			action = "change"
		}
	}
	return h.audit.Write(r, signalbox.Audit{
		EventType: "agent", Action: action, AgentName: row.Name, Resource: row.URL,
		Details: signalbox.AuditDetails(map[string]any{"kind": row.Kind, "slots": row.Slots, "source": string(row.Source)}),
	})
}

// sameAgent reports whether a token proves that its sender is the agent of this row.
func (h *agentHandlers) sameAgent(a signalbox.Agent, token string) bool {
	own, err := h.engine.AgentToken(a)
	return err == nil && own != "" && subtle.ConstantTimeCompare([]byte(own), []byte(token)) == 1
}

// lookup resolves a host.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

func systemLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// lookupTimeout limits the DNS lookup of an agent's host.
const lookupTimeout = 5 * time.Second

// checkAgentURL checks the URL of an agent, by its resolved addresses.
func (h *agentHandlers) checkAgentURL(ctx context.Context, raw string, trusted bool) error {
	base, ok := signalbox.AgentURL(raw)
	u, err := url.Parse(base)
	if !ok || err != nil {
		return signalbox.Invalid("url", "%q is not the address of an agent: want http://HOST:PORT, with no path, query, fragment or user", httpio.Clip(raw))
	}
	if !trusted && !isLoopback(u.Hostname()) {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil { // the name may resolve to another address later
			return &httpio.Refusal{Err: signalbox.Invalid("url", "%s is a name, which needs a token because it may resolve to another address later", httpio.Clip(u.Hostname())),
				Hint: "give the address in digits, or localhost; or start the director with a token and give it to the agent"}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := h.lookup(ctx, u.Hostname())
	if err != nil || len(addrs) == 0 {
		return &signalbox.Error{Code: signalbox.CodeValidation, Field: "url", Err: err,
			Message: "the host of url cannot be resolved: " + httpio.Clip(u.Hostname())}
	}
	for _, ip := range addrs {
		if err := agentaddr.Check(ip, trusted); err != nil {
			return &httpio.Refusal{Err: signalbox.Invalid("url", "%s", err.Error()),
				Hint: "without a token an agent must be on this host"}
		}
	}
	return nil
}

// nameCacheTTL is how long the names of agents are cached, so that thousands of heartbeats
// do not each read all names. Heartbeats of an agent that another director has removed are
// accepted for that long.
const nameCacheTTL = 10 * time.Second

// agentNameCache caches the names of known agents.
type agentNameCache struct {
	mu   sync.Mutex
	at   time.Time
	seen map[string]bool
}

func (n *agentNameCache) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = nil
}

func (n *agentNameCache) has(name string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	age := now.Sub(n.at)
	return n.seen[name] && age >= 0 && age < nameCacheTTL
}

func (n *agentNameCache) set(agents []signalbox.Agent, now time.Time) {
	seen := make(map[string]bool, len(agents))
	for _, a := range agents {
		seen[a.Name] = !signalbox.IsExecutor(a.Name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen, n.at = seen, now
}

// checkKnown returns CodeNotFound for an unknown agent.
func (h *agentHandlers) checkKnown(ctx context.Context, name string) error {
	now := h.engine.Now()
	if h.names.has(name, now) {
		return nil
	}
	agents, err := h.engine.Read().Agents(ctx)
	if err != nil {
		return err
	}
	if h.names.set(agents, now); h.names.has(name, now) {
		return nil
	}
	_, err = agentRow(ctx, h.engine, name) // returns the error for the name
	return err
}

// checkPlace refuses an agent that cannot be reached at its address, and returns the row's
// source and URL.
func (h *agentHandlers) checkPlace(r *http.Request, req *api.RegisterAgent) (signalbox.AgentSource, string, error) {
	who := access.CallerOf(r)
	if base, ok := signalbox.AgentURL(req.URL); ok {
		req.URL = base
	}
	switch {
	case !req.Pull && req.Instance != "":
		return "", "", signalbox.Invalid("instance", "instance is for agents that pull: set pull too")
	case !req.Pull && req.Child && who.Loopback:
		return signalbox.AgentChild, req.URL, h.checkAgentURL(r.Context(), req.URL, who.Trusted)
	case !req.Pull:
		return signalbox.AgentRegistered, req.URL, h.checkAgentURL(r.Context(), req.URL, who.Trusted)
	case req.URL != "":
		return "", "", signalbox.Invalid("url", "url must be left out by an agent that pulls")
	case h.pull == nil:
		return "", "", httpio.Refuse(signalbox.CodeUnsupported, "register at another director", "this director serves no agents that pull")
	case !signalbox.ValidInstance(req.Instance):
		return "", "", signalbox.Invalid("instance", "instance must be 8 to 64 letters, digits or hyphens, not %q", httpio.Clip(req.Instance))
	}
	return signalbox.AgentPull, signalbox.PullURL(req.Instance), nil
}
