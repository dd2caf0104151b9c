package gateway

import (
	"container/list"
	"slices"
	"sync"

	"github.com/signalbox-ai/signalbox"
)

// CallLog keeps the ended calls of the executions that called most recently, at most
// signalbox.MaxToolCalls of each, for the results of their tasks. Its methods are safe for
// concurrent use.
type CallLog struct {
	mu    sync.Mutex
	order list.List // of *executionCalls, most recent caller first
	byID  map[string]*list.Element
}

// loggedExecutions is the maximum number of executions in a CallLog.
const loggedExecutions = 512

type executionCalls struct {
	id    string
	calls []signalbox.ToolCall
}

// Ended records a call; it is meant for Options.Ended. It ignores calls outside of an
// execution and calls of tools that do not exist.
func (l *CallLog) Ended(e Ended) {
	if e.Execution == "" || e.Tool == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = make(map[string]*list.Element)
	}
	at := l.byID[e.Execution]
	if at == nil {
		if l.order.Len() >= loggedExecutions {
			oldest := l.order.Remove(l.order.Back()).(*executionCalls)
			delete(l.byID, oldest.id)
		}
		at = l.order.PushFront(&executionCalls{id: e.Execution})
		l.byID[e.Execution] = at
	}
	l.order.MoveToFront(at)
	x := at.Value.(*executionCalls)
	x.calls = append(x.calls[max(0, len(x.calls)-signalbox.MaxToolCalls+1):], signalbox.ToolCall{
		Tool: e.Tool, Queue: e.Queue, Outcome: e.Outcome, At: e.At.UTC(), Waited: e.Waited, Took: e.Took,
	})
}

// Of returns the calls of an execution in the order in which they ended.
func (l *CallLog) Of(execution string) []signalbox.ToolCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.byID[execution]
	if at == nil {
		return nil
	}
	return slices.Clone(at.Value.(*executionCalls).calls)
}
