package director

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// lane is GET /api/agents/{name}/queue.
func (d *Director) lane(w http.ResponseWriter, r *http.Request) error {
	row, err := d.agentRow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	l, err := d.engine.Lane(r.Context(), row.Name)
	if err != nil {
		return err
	}
	out := api.Lane{
		AgentName: row.Name, IsBusy: l.Busy(), QueueLength: l.Length, QueuedExecutions: executionViews(l.Waiting),
		Executions: executionViews(l.Running), Bypass: executionViews(l.Isolated), Slots: l.Slots,
		MaxQueueSize: d.engine.MaxChats(), Paused: pauseViews(l.Pauses),
	}
	for i := range l.Withheld {
		lost := executionView(&l.Withheld[i])
		lost.Status = seedStatus(signalbox.Working) // as far as is known
		out.Executions = append(out.Executions, lost)
	}
	if len(out.Executions) > 0 {
		out.CurrentExecution = &out.Executions[0]
	}
	d.answer(w, http.StatusOK, out)
	return nil
}

func executionViews(tasks []signalbox.Task) []api.Execution {
	views := make([]api.Execution, len(tasks))
	for i := range tasks {
		views[i] = executionView(&tasks[i])
	}
	return views
}

// executionView is a task in the words of the seed execution-queue.
func executionView(t *signalbox.Task) api.Execution {
	v := api.Execution{
		ID: t.ID, AgentName: agentOf(t), Source: seedSource(t), SourceUserEmail: t.OwnerEmail, Message: t.Preview,
		QueuedAt: t.CreatedAt, Status: seedStatus(t.State),
	}
	v.SourceAgent, _ = signalbox.OwnerAgent(t.Owner)
	v.SourceUserID, _ = signalbox.OwnerUser(t.Owner)
	if t.State != signalbox.Pending { // what the row keeps of an execution that came to nothing is over
		v.StartedAt = timePtr(t.StartedAt)
	}
	return v
}

// agentOf is the agent that runs or ran a task, or else the only one that may;
// "" where that is not known yet.
func agentOf(t *signalbox.Task) string {
	if isTool(t) {
		return "" // the director's own executor is none
	}
	if t.State != signalbox.Pending && t.Agent != "" {
		return t.Agent
	}
	name, _ := signalbox.OnlyAgent(t.Queue)
	return name
}

// seedSource is the seed's word for who triggered a task.
func seedSource(t *signalbox.Task) string {
	if t.Source == signalbox.SourceScheduler { // also of an agent's schedule
		return "schedule"
	}
	if _, ok := signalbox.OwnerAgent(t.Owner); ok || t.Source == signalbox.SourceAgent {
		return "agent"
	}
	return "user"
}

// seedStatus is the seed's word for a state (design §2).
func seedStatus(s signalbox.State) string {
	switch s {
	case signalbox.Pending, signalbox.Dispatching:
		return "queued"
	case signalbox.Working, signalbox.Cancelling:
		return "running"
	}
	return string(s)
}
