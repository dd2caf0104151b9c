package signalbox

import "strings"

// Names of queues. A queue says who may take its tasks.
const (
	QueueWork     = "work"     // every agent serves it
	QueueCommands = "commands" // async command tools; the director's own executor serves it
	QueueCalls    = "calls"    // other tool calls that became tasks; the director's own executor serves it
	poolPrefix    = "pool:"
	agentPrefix   = "agent:"
	bypassPrefix  = "bypass:"
)

// PoolQueue returns the queue that the agents of one kind serve.
func PoolQueue(kind string) string { return poolPrefix + kind }

// AgentQueue returns the queue that only one agent serves.
func AgentQueue(name string) string { return agentPrefix + name }

// BypassQueue returns the queue that holds the bypass tasks of an agent between
// their submit and their claim.
func BypassQueue(agent string) string { return bypassPrefix + agent }

// QueueBypass returns the agent of a bypass queue; ok is false for other queues.
func QueueBypass(queue string) (agent string, ok bool) { return strings.CutPrefix(queue, bypassPrefix) }

// QueueAgent returns the agent of an agent's own queue; ok is false for other queues.
func QueueAgent(queue string) (name string, ok bool) { return strings.CutPrefix(queue, agentPrefix) }

// OnlyAgent returns the only agent that takes tasks from queue, into its slots
// or its bypass; ok is false if other agents may take them too.
func OnlyAgent(queue string) (name string, ok bool) {
	if name, ok = QueueAgent(queue); ok {
		return name, true
	}
	if name, ok = QueueBypass(queue); ok {
		return name, true
	}
	return "", false
}

// QueueKind returns the kind of the agents that serve a pool queue; ok is false for other queues.
func QueueKind(queue string) (kind string, ok bool) { return strings.CutPrefix(queue, poolPrefix) }

// ValidQueue reports whether queue can be the name of a queue.
func ValidQueue(queue string) bool {
	if name, ok := QueueAgent(queue); ok {
		return ValidName(name)
	}
	if kind, ok := QueueKind(queue); ok {
		return ValidName(kind)
	}
	if name, ok := QueueBypass(queue); ok {
		return ValidName(name)
	}
	return queue == QueueWork || queue == QueueCommands || queue == QueueCalls
}

// Names of limits. A limit bounds how many tasks may wait; it is not a queue.
const (
	LimitWork     = "work"     // waiting tasks submitted through the work-queue endpoints, in any queue
	LimitCommands = "commands" // waiting command tasks
	LimitCalls    = "calls"    // tool calls that became tasks, until they are claimed
)

// LimitChat returns the limit on the waiting chats of one agent.
func LimitChat(agent string) string { return "chat:" + agent }

// LimitBypass returns the limit on the bypass tasks of one agent that wait for a claim.
func LimitBypass(agent string) string { return "bypass:" + agent }

// Pause says that no tasks are claimed from a queue. Queue "" means all queues.
type Pause struct {
	Queue  string
	Reason string
	By     string
	AtMS   int64 // when it was paused, Unix ms
	// UntilMS is when it resumes by itself, Unix ms; 0: only when someone resumes it.
	UntilMS int64
}
