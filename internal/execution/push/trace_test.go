package push_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// marks returns traceparents made of what it is told about an execution.
type marks struct {
	mu  sync.Mutex
	all []string
}

func (m *marks) Execution(t *signalbox.Task, stored string, adopted bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := fmt.Sprintf("%s/%s/%d/%t", stored, t.ID, t.Fence, adopted)
	m.all = append(m.all, mark)
	return mark
}

func (m *marks) told() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.all...)
}

// An agent gets the traceparent of each attempt, and adopted executions are reported to the traces, too.
func TestTraceIsPropagatedToAgent(t *testing.T) {
	traces := &marks{}
	h := newFixture(t, func(h *fixture, _ *engine.Options) { h.opts.Traces = traces })
	a := h.agent(Options{})
	a.Script(Offer, Nothing(503))
	id := h.submit(engine.NewTask{Trace: "submit"})
	h.start()
	e := a.AwaitStart(1)
	h.untilState(id, signalbox.Working)
	h.restart()
	a.Finish(e.TaskID, End{Output: "done"})
	task := h.ends(id, signalbox.ReasonCompleted)
	told := traces.told()
	if len(told) != 3 || told[1] != fmt.Sprintf("submit/%s/%d/false", id, task.Fence) || told[2] != fmt.Sprintf("submit/%s/%d/true", id, task.Fence) {
		t.Fatalf("%q", told)
	}
	var sent []string
	for _, r := range a.Requests(Offer) {
		sent = append(sent, r.Header.Get("Traceparent"))
	}
	if len(sent) != 2 || sent[0] != told[0] || sent[1] != told[1] {
		t.Errorf("sent %q, told %q", sent, told)
	}
}
