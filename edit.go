package signalbox

import (
	"cmp"
	"strings"
	"time"
)

// Order says where a task goes in its queue.
type Order string

// The places in a queue. A task at the top stays ahead of all others until it is claimed. If
// several were moved there, the one moved last is first.
const (
	OrderKeep Order = ""     // where it is
	OrderBack Order = "back" // behind all of its priority
	OrderTop  Order = "top"  // ahead of all, whatever their priority
)

// Edit is a change of a waiting task. A zero field changes nothing.
type Edit struct {
	Rev      int64 // Task.Rev as the caller read it: the edit is refused if the task has another one
	Prompt   string
	Route    *Route
	Priority *int
	Order    Order
	Budget   *Budget

	// What is stored with the task: its whole request with its environment if Prompt or Route
	// is set, and the Task.Bias of its priority.
	Request *Request
	Bias    time.Duration
}

// Route says who may take a task: one agent, agents of one kind, or any agent if both are "".
type Route struct{ Agent, Kind string }

// Queue returns the queue that those agents serve.
func (r Route) Queue() string {
	switch {
	case r.Agent != "":
		return AgentQueue(r.Agent)
	case r.Kind != "":
		return PoolQueue(r.Kind)
	}
	return QueueWork
}

// CheckEdit refuses an edit that is invalid or that its caller may not make. It does not check
// whether the agent exists. Prompt and agent are restricted because they decide what is done in
// the owner's name and who gets the task's environment.
//
// Errors: CodeValidation, CodeForbidden, CodeUnsupported.
func CheckEdit(t *Task, e *Edit, by Principal) error {
	local, retarget := by.Kind == "", e.Prompt != "" || e.Route != nil || e.Budget != nil
	own := local || t.Owner != "" && t.Owner == by.Key()
	switch {
	case t.Mode == ModeTool:
		return Errorf(CodeUnsupported, "task %s is a call of the tool %s, which cannot be changed: cancel it and call the tool again", t.ID, t.Tool)
	case retarget && !own && !by.Has(ScopeAdmin):
		return Errorf(CodeForbidden, "task %s belongs to another owner: only its owner and an admin can change its prompt, its agent and its budget", t.ID)
	case e.Order == OrderTop && !local && !by.Has(ScopeCancel):
		return Errorf(CodeForbidden, "to move a task ahead of all others needs the scope %s, which %s does not have", ScopeCancel, by)
	case e.Route != nil && t.SessionID != "":
		return Errorf(CodeUnsupported, "task %s is a turn of session %s and stays with the agent that holds it: cancel it and submit it again", t.ID, t.SessionID)
	case e.Route != nil && (t.Mode != ModeQueue || t.Waits):
		return Errorf(CodeUnsupported, "task %s stays with its agent, because its caller waits for it there: cancel it and submit it again", t.ID)
	}
	err := cmp.Or(
		InvalidIf(e.Rev <= 0, "revision", "revision is required: that of the task as you read it with GET /api/queue/{id}"),
		InvalidIf(e.summary() == "", "", "nothing to change: give prompt, priority, agent, kind, place or budget"),
		CheckChoice("place", e.Order, OrderTop, OrderBack),
	)
	if err == nil && e.Prompt != "" {
		err = CheckPrompt(e.Prompt)
	}
	if err == nil && e.Budget != nil && e.Budget.Over(t.Spent) {
		err = Invalid("budget", "budget must be more than what task %s has spent: that would be %s", t.ID, e.Budget.Of(t.Spent))
	}
	if err == nil && e.Priority != nil {
		err = CheckRange("priority", *e.Priority, MinPriority, MaxPriority)
	}
	return err
}

// summary lists what changes, for the journal, which holds no prompts; "" for nothing.
func (e *Edit) summary() string {
	var parts []string
	for _, p := range []struct {
		name    string
		changes bool
	}{{"prompt", e.Prompt != ""}, {"priority", e.Priority != nil}, {"agent", e.Route != nil}, {"place", e.Order != ""}, {"budget", e.Budget != nil}} {
		if p.changes {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, ", ")
}

func edit(c *Change, ev Event) error {
	t, e := &c.Task, ev.Edit
	if e == nil || e.summary() == "" {
		return Errorf(CodeConflict, "task %s: the edit changes nothing", t.ID)
	}
	if e.Rev != t.Rev {
		return Errorf(CodeConflict, "task %s has changed meanwhile: it is at revision %d, not %d; read it again", t.ID, t.Rev, e.Rev)
	}
	if r := e.Request; r != nil {
		if !ValidQueue(r.Queue) {
			return Invalid("queue", "%q is not a queue", r.Queue)
		}
		c.Request, t.Queue, t.Preview, t.RequestSize = r, r.Queue, Preview(r.Prompt), r.Size()
	}
	t.Priority, t.Budget = *cmp.Or(e.Priority, &t.Priority), *cmp.Or(e.Budget, &t.Budget)
	if e.Priority != nil || e.Order == OrderBack { // either one ends a place at the top
		t.Bias = e.Bias
	}
	c.Order, c.Entry.Message = e.Order, "changed: "+e.summary()
	t.EditedAt, t.EditedBy = latest(ev.Now, t.CreatedAt), ev.By
	return nil
}
