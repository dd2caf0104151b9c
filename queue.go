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

// PoolQueue is the queue that agents of one kind serve.
func PoolQueue(kind string) string { return poolPrefix + kind }

// AgentQueue is the queue that one agent alone serves.
func AgentQueue(name string) string { return agentPrefix + name }

// BypassQueue is where the bypass tasks of an agent stand for the moment
// between their submit and their claim.
func BypassQueue(agent string) string { return bypassPrefix + agent }

// QueueBypass returns the agent whose bypass tasks stand in queue, if it is
// such a queue.
func QueueBypass(queue string) (agent string, ok bool) { return strings.CutPrefix(queue, bypassPrefix) }

// QueueAgent returns the agent that alone serves queue, if it is such a queue.
func QueueAgent(queue string) (name string, ok bool) { return strings.CutPrefix(queue, agentPrefix) }

// OnlyAgent returns the agent that alone takes tasks from queue, into its slots
// or its bypass, if it is such a queue.
func OnlyAgent(queue string) (name string, ok bool) {
	if name, ok = QueueAgent(queue); ok {
		return name, true
	}
	if name, ok = QueueBypass(queue); ok {
		return name, true
	}
	return "", false
}

// QueueKind returns the kind of agents that serve queue, if it is a pool.
func QueueKind(queue string) (kind string, ok bool) { return strings.CutPrefix(queue, poolPrefix) }

// ValidQueue reports whether queue is a name that a queue can have.
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

// Names of limits. A limit says how many tasks may wait; it is not a queue.
const (
	LimitWork     = "work"     // waiting tasks of the work-queue ways in, whatever their queue
	LimitCommands = "commands" // waiting command tasks
	LimitCalls    = "calls"    // tool calls that became tasks, until they are claimed
)

// LimitChat is the limit on the waiting chats of one agent.
func LimitChat(agent string) string { return "chat:" + agent }

// LimitBypass is the limit on bypass tasks of one agent that wait to be claimed.
func LimitBypass(agent string) string { return "bypass:" + agent }

// Pause says that a queue hands out nothing. Queue "" means all queues.
type Pause struct {
	Queue  string
	Reason string
	By     string
	AtMS   int64 // when it was paused, Unix ms
	// UntilMS is when it resumes by itself, Unix ms; 0: when someone says so.
	UntilMS int64
}
