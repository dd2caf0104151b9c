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
	AgentPull           AgentSource = "pull"       // nobody can connect to it: it asks for its tasks
	AgentInternal       AgentSource = "internal"   // the director's own executor
	DefaultAgentSlots               = 1
	MaxAgentSlots                   = 10000
	MaxAgents                       = 10000
	MaxAgentNameLength              = 64
	MaxSessionIDLength              = 128
	MaxIdempotencyBytes             = 255
)

// PullURL is what stands in the row of an agent that pulls where the address of
// another stands: no address, but the instance that has the name.
func PullURL(instance string) string { return pullScheme + instance }

// PullInstance is the instance in such a URL.
func PullInstance(url string) (instance string, ok bool) { return strings.CutPrefix(url, pullScheme) }

const pullScheme = "pull:"

// ValidInstance reports whether an agent that pulls may call its instance so.
func ValidInstance(s string) bool {
	return len(s) >= 8 && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// KindUnknown is the kind of an agent that has not said it yet.
const KindUnknown = "unknown"

// Agent is the durable row of an agent: what it is, not how it is. Whether it
// is up or busy is learnt from it and from its slots.
type Agent struct {
	Name    string
	Kind    string
	URL     string
	Slots   int // executions it may run side by side
	Fencing bool
	Source  AgentSource
	// SealedToken is the bearer token that the agent wants, encrypted.
	SealedToken []byte
	WorkDir     string
	Version     string
	CreatedAt   time.Time
	// Proof says that the agent proves on each connection that it knows its
	// token: nothing is sent to its address before that.
	Proof bool
	// Account is what its runs spend; "": nothing that is known. While that is closed it
	// claims nothing.
	Account string
	// Of these the store keeps nothing: agents tell them.
	//
	// Folder identifies the folder in which its runs work one at a time, the same for all
	// agents that work in it; "": none is known. Workplace says where runs work whose tasks do not say.
	Folder    string
	Workplace Workplace
	// Full says why it takes no tasks now, isolated ones apart; "": it does.
	Full string
}

// FolderOf returns the folder that a run of a task would hold at the agent; "" for none.
func (a *Agent) FolderOf(place Workplace) string {
	if cmp.Or(place, a.Workplace) == WorkplaceFolder {
		return a.Folder
	}
	return ""
}

// The director's own executor has an agent row for each of its queues, with a
// name that no agent can have: nothing is dispatched to it over HTTP.
const (
	ExecutorCommands = "commands" // slots of async command tools
	ExecutorCalls    = "calls"    // slots of tool calls that became tasks
)

// DefaultInstance is the instance of a director that is the only one on its
// store.
const DefaultInstance = "local"

// ExecutorName is the name of the executor's row of that kind in one instance
// of the director.
func ExecutorName(kind, instance string) string { return kind + "@" + instance }

// ExecutorKind returns the kind of the director's own executor that has that
// name, if one has it.
func ExecutorKind(name string) (kind string, ok bool) {
	kind, _, ok = strings.Cut(name, "@")
	return kind, ok && (kind == ExecutorCommands || kind == ExecutorCalls)
}

// IsExecutor reports whether a name is that of a row of the director's own
// executor, which is no agent: nothing can be submitted to it.
func IsExecutor(name string) bool {
	_, ok := ExecutorKind(name)
	return ok
}

// Queues returns the queues that the agent serves. There is no order between
// them: the best head wins.
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
// rebuilt from its parts. ok is false for what is more or other than that: a
// path, a query, a fragment or a user would choose what is asked there.
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
// executions: the bypass has slot rows of its own, above all others.
const FirstIsolatedSlot = MaxAgentSlots

// Isolated reports whether a slot of that number is one for isolated
// executions.
func Isolated(slot int) bool { return slot >= FirstIsolatedSlot }

// Slot is a slot that is in use. A free slot has no row.
type Slot struct {
	Agent   string
	Slot    int // 0-based; from FirstIsolatedSlot on for isolated executions
	TaskID  string
	Fence   int64
	Expires time.Time // end of the slot lease unless renewed
	// Withheld says that the task has ended here, as lost, while its agent
	// may still be at it: the slot is free when the agent says so, or
	// someone releases it.
	Withheld bool
}
