package signalbox

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AgentSource says how the director came to know an agent.
type AgentSource string

// The ways in which an agent becomes known.
const (
	AgentFromConfig     AgentSource = "config"     // listed in the configuration
	AgentRegistered     AgentSource = "registered" // it announced itself
	AgentDiscovered     AgentSource = "discovered" // found by the port scan
	AgentChild          AgentSource = "child"      // started by signalbox up
	AgentPull           AgentSource = "pull"       // cannot be connected to: it polls for its tasks
	AgentInternal       AgentSource = "internal"   // the director's own executor
	DefaultAgentSlots               = 1
	MaxAgentSlots                   = 10000
	MaxAgents                       = 10000
	MaxAgentNameLength              = 64
	MaxSessionIDLength              = 128
	MaxIdempotencyBytes             = 255
)

// PullURL returns what the URL field of a pull agent's row holds instead of an address: the
// instance that owns the name.
func PullURL(instance string) string { return pullScheme + instance }

// PullInstance returns the instance in a URL made by PullURL.
func PullInstance(url string) (instance string, ok bool) { return strings.CutPrefix(url, pullScheme) }

const pullScheme = "pull:"

// ValidInstance reports whether s can be the instance of a pull agent: 8 to 64 letters, digits
// or hyphens.
func ValidInstance(s string) bool {
	return len(s) >= 8 && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// KindUnknown is the kind of an agent that has not reported its kind yet.
const KindUnknown = "unknown"

// Agent is the durable row of an agent. It holds no status: whether the agent is up or busy
// follows from its heartbeats and its slots.
type Agent struct {
	Name    string
	Kind    string
	URL     string
	Slots   int // executions it may run concurrently
	Fencing bool
	Source  AgentSource
	// SealedToken is the bearer token that the agent requires, encrypted.
	SealedToken []byte
	WorkDir     string
	Version     string
	CreatedAt   time.Time
	// Proof says that the agent proves on each connection that it knows its token. Nothing is
	// sent to its address before that.
	Proof bool
	// Account is what its runs spend; "": unknown. The agent claims nothing while the account
	// is closed.
	Account string
	// The fields below are not stored: agents report them.
	//
	// Folder identifies the folder in which its runs work one at a time. All agents that work
	// in one folder have the same Folder; "": unknown. Workplace is the default for tasks that
	// set none.
	Folder    string
	Workplace Workplace
	// Full says why it takes no tasks now, except isolated ones; "": it takes tasks.
	Full string
}

// FolderOf returns the folder that a run with that workplace would hold at the agent; "" for
// none.
func (a *Agent) FolderOf(place Workplace) string {
	if cmp.Or(place, a.Workplace) == WorkplaceFolder {
		return a.Folder
	}
	return ""
}

// The director's own executor has an agent row for each of its queues. Its name is one that no
// agent can have, and nothing is dispatched to it over HTTP.
const (
	ExecutorCommands = "commands" // slots of async command tools
	ExecutorCalls    = "calls"    // slots of tool calls that became tasks
)

// DefaultInstance is the instance of a director that has its store to itself.
const DefaultInstance = "local"

// ExecutorName returns the name of the executor's row for a kind and an instance of the
// director.
func ExecutorName(kind, instance string) string { return kind + "@" + instance }

// ExecutorKind returns the kind in the name of a row of the director's own executor; ok is
// false for any other name.
func ExecutorKind(name string) (kind string, ok bool) {
	kind, _, ok = strings.Cut(name, "@")
	return kind, ok && (kind == ExecutorCommands || kind == ExecutorCalls)
}

// IsExecutor reports whether name is a row of the director's own executor. Nothing can be
// submitted to it as an agent.
func IsExecutor(name string) bool {
	_, ok := ExecutorKind(name)
	return ok
}

// Queues returns the queues that the agent serves. No queue comes before another: the agent
// takes the head with the lowest OrderKey.
func (a *Agent) Queues() []string {
	switch kind, _ := ExecutorKind(a.Name); kind {
	case ExecutorCommands:
		return []string{QueueCommands}
	case ExecutorCalls:
		return []string{QueueCalls}
	}
	return []string{AgentQueue(a.Name), PoolQueue(a.Kind), QueueWork}
}

// Serves reports whether the agent takes tasks from queue.
func (a *Agent) Serves(queue string) bool {
	return slices.Contains(a.Queues(), queue) || queue == BypassQueue(a.Name)
}

// AgentURL returns the address of an agent's HTTP API, scheme://host[:port],
// rebuilt from its parts. ok is false for anything else: with a path, a query, a
// fragment or a user, the URL would decide what is requested there.
func AgentURL(text string) (base string, ok bool) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.User != nil:
		return "", false
	case u.Path != "" && u.Path != "/", strings.ContainsAny(text, "?#"), u.Port() == "" && strings.HasSuffix(u.Host, ":"):
		return "", false
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return "", false
		}
	}
	return u.Scheme + "://" + u.Host, true
}

// FirstIsolatedSlot is the number of an agent's first slot for isolated
// executions. The bypass has its own slot rows, numbered above all others.
const FirstIsolatedSlot = MaxAgentSlots

// Isolated reports whether the slot with that number is for isolated executions.
func Isolated(slot int) bool { return slot >= FirstIsolatedSlot }

// Slot is a slot that is in use. A free slot has no row.
type Slot struct {
	Agent   string
	Slot    int // 0-based; from FirstIsolatedSlot on for isolated executions
	TaskID  string
	Fence   int64
	Expires time.Time // end of the slot lease unless renewed
	// Withheld says that the task has ended as lost while its agent may still run it. The
	// slot becomes free when the agent reports so or someone releases it.
	Withheld bool
}
