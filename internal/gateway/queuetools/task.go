package queuetools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// submitArgs are the arguments of submit_task.
type submitArgs struct {
	Prompt         string          `json:"prompt"`
	Agent          string          `json:"agent"`
	Kind           string          `json:"kind"`
	Model          string          `json:"model"`
	Tier           string          `json:"tier"`
	SessionID      string          `json:"session_id"`
	TimeoutSeconds int             `json:"timeout_seconds"`
	Priority       int             `json:"priority"`
	Project        *api.Project    `json:"project"`
	Workspace      string          `json:"workspace"`
	Repo           string          `json:"repo"`
	Base           string          `json:"base"`
	Checks         []api.TaskCheck `json:"checks"`
	CheckRetries   *int            `json:"check_retries"`
	Land           string          `json:"land"`
	LandMethod     string          `json:"land_method"`
	FastForward    bool            `json:"fast_forward"`
	NotBefore      *time.Time      `json:"not_before"`
	Budget         *api.Budget     `json:"budget"`
	Needs          map[string]int  `json:"needs"`
	IdempotencyKey *string         `json:"idempotency_key"`
}

// submittedTask is the answer of submit_task.
type submittedTask struct {
	QueueID     string   `json:"queue_id"`
	State       string   `json:"state"`
	Queue       string   `json:"queue"`
	Position    int      `json:"position"`
	Approximate bool     `json:"position_approximate,omitempty"`
	ETA         *api.ETA `json:"eta,omitempty"`
	Replayed    bool     `json:"replayed,omitempty"`
	Next        string   `json:"next"`
}

// submit implements submit_task.
func submit(ctx context.Context, a *request) (gateway.Result, error) {
	var in submitArgs
	if err := a.read(&in); err != nil {
		return gateway.Result{}, err
	}
	body := api.SubmitRequest{
		Prompt: in.Prompt, Agent: in.Agent, Kind: in.Kind, Model: in.Model, Tier: in.Tier, SessionID: in.SessionID,
		TimeoutSeconds: in.TimeoutSeconds, Priority: in.Priority, Project: in.Project, Workspace: in.Workspace, Repo: in.Repo, Base: in.Base, NotBefore: in.NotBefore, Budget: in.Budget, Needs: in.Needs,
		Checks: in.Checks, CheckRetries: in.CheckRetries, Land: in.Land, LandMethod: in.LandMethod, FastForward: in.FastForward,
	}
	if a.who.Kind == signalbox.PrincipalAgent {
		body.Source = string(signalbox.SourceAgent)
	}
	q := httpio.Outgoing{Method: http.MethodPost, Path: "/api/queue/task", Header: map[string]string{}, Body: body}
	if in.IdempotencyKey != nil {
		q.Header["Idempotency-Key"] = *in.IdempotencyKey
	}
	var got api.SubmitResponse
	if err := a.ask(ctx, q, &got); err != nil {
		return gateway.Result{}, err
	}
	out := submittedTask{
		QueueID: got.QueueID, State: got.State, Queue: got.Queue, Position: got.Position, Approximate: got.PositionApproximate,
		ETA: got.ETA, Replayed: got.Replayed, Next: followHint(got.QueueID),
	}
	place := "state " + got.State
	if got.Position > 0 {
		place = fmt.Sprintf("position %d in %s", got.Position, got.Queue)
	}
	if when := etaWords(got.ETA); when != "" {
		place += "; " + when
	}
	lines := []string{fmt.Sprintf("Queued: %s (%s).", got.QueueID, place)}
	if got.Message != "" {
		lines = append(lines, "Note: "+got.Message+".")
	}
	return newResult(out, strings.Join(append(lines, out.Next), "\n"))
}

// Arguments of the tools for one task.
type (
	statusArgs struct {
		TaskID      string `json:"task_id"`
		WaitSeconds int    `json:"wait_seconds"`
	}
	outputArgs struct {
		TaskID      string `json:"task_id"`
		After       int64  `json:"after"`
		WaitSeconds int    `json:"wait_seconds"`
	}
	cancelArgs struct {
		TaskID string `json:"task_id"`
	}
)

// taskID checks an ID, which becomes part of a path, and a wait, whose maximum
// is lower than in the API because clients give up sooner. It returns the ID
// that the task has here, which differs for imported tasks.
func (a *request) taskID(ctx context.Context, given string, wait int) (string, error) {
	id, err := a.d.ImportedID(ctx, given)
	switch {
	case given == "":
		return "", signalbox.Invalid("task_id", "task_id is missing: give the queue_id of a task")
	case err != nil:
		return "", err
	case !signalbox.ValidID(id):
		return "", signalbox.Errorf(signalbox.CodeNotFound, "%q is not the id of a task: an id is %q and 26 lower-case letters and digits", httpio.Clip(id), signalbox.IDPrefix)
	case wait < 0 || wait > maxWait:
		return "", signalbox.Invalid("wait_seconds", "wait_seconds must be 0 to %d, not %d; ask again where a task takes longer", maxWait, wait)
	}
	return id, nil
}

// askTools asks for a task as the task of a tool. ok is false if it is not one,
// or not one that the caller may see: then the queue is asked.
func (a *request) askTools(ctx context.Context, q httpio.Outgoing, into any) (ok bool, err error) {
	if !a.d.ToolTasks {
		return false, nil
	}
	err = a.ask(ctx, q, into)
	if hasStatus(err, http.StatusNotFound, http.StatusForbidden) {
		return false, nil
	}
	return err == nil, err
}

// output implements task_output.
func output(ctx context.Context, a *request) (gateway.Result, error) {
	var in outputArgs
	err := a.read(&in)
	if err == nil {
		in.TaskID, err = a.taskID(ctx, in.TaskID, in.WaitSeconds)
	}
	if err != nil {
		return gateway.Result{}, err
	}
	id := in.TaskID
	query := url.Values{"after": {strconv.FormatInt(in.After, 10)}}
	if in.WaitSeconds > 0 {
		query.Set("wait", strconv.Itoa(in.WaitSeconds))
	}
	var got api.Output
	if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/api/queue/" + id + "/output", Query: query}, &got); err != nil {
		return gateway.Result{}, err
	}
	out := newTaskOutput(&got)
	head := fmt.Sprintf("%s is %s; bytes %d to %d of its output", id, out.State, out.Seq, out.Next)
	switch {
	case out.Truncated:
		head += "; what came before is no longer kept"
	case out.Text == "" && !out.Done:
		head += ": nothing new yet"
	}
	if out.Done {
		head += "; this is its end."
	} else {
		head += fmt.Sprintf("; ask again with after %d.", out.Next)
	}
	return newResult(out, head, out.Text)
}

// taskOutput is the answer of task_output.
type taskOutput struct {
	QueueID   string `json:"queue_id"`
	State     string `json:"state"`
	Seq       int64  `json:"seq"`
	Text      string `json:"text"`
	Next      int64  `json:"next"`
	Truncated bool   `json:"truncated"`
	Done      bool   `json:"done"`
}

// newTaskOutput cuts the log to the size of one answer.
func newTaskOutput(o *api.Output) taskOutput {
	out := taskOutput{QueueID: o.QueueID, State: o.State, Seq: o.Seq, Text: o.Text, Next: o.Next, Truncated: o.Truncated, Done: o.Done}
	if len(out.Text) <= maxOutput {
		return out
	}
	end := maxOutput
	for !utf8.RuneStart(out.Text[end]) {
		end--
	}
	out.Text, out.Done = out.Text[:end], false
	out.Next = min(o.Next, o.Seq+int64(end)) // invalid UTF-8 is shorter in the log than here
	return out
}

// cancel implements cancel_task.
func cancel(ctx context.Context, a *request) (gateway.Result, error) {
	var in cancelArgs
	err := a.read(&in)
	if err == nil {
		in.TaskID, err = a.taskID(ctx, in.TaskID, 0)
	}
	if err != nil {
		return gateway.Result{}, err
	}
	id := in.TaskID
	out := struct {
		QueueID string `json:"queue_id"`
		State   string `json:"state"`
		Message string `json:"message,omitempty"`
	}{QueueID: id}
	var call api.ToolTask
	isCall, err := a.askTools(ctx, httpio.Outgoing{Method: http.MethodPost, Path: "/api/tools/tasks/" + id + "/cancel"}, &call)
	if err != nil {
		return gateway.Result{}, err
	}
	out.State, out.Message = call.State, call.Message
	if !isCall {
		var got api.Cancelled
		if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodPost, Path: "/api/queue/" + id + "/cancel"}, &got); err != nil {
			return gateway.Result{}, err
		}
		out.State, out.Message = got.State, got.Message
	}
	if !signalbox.State(out.State).Terminal() {
		out.Message = "it is being stopped, which takes a moment. " + followHint(id)
	}
	return newResult(out, strings.TrimSpace(fmt.Sprintf("%s is %s. %s", id, out.State, out.Message)))
}

// landArgs are the arguments of land_task.
type landArgs struct {
	TaskID      string `json:"task_id"`
	Onto        string `json:"onto"`
	Method      string `json:"method"`
	FastForward bool   `json:"fast_forward"`
	Drop        bool   `json:"drop"`
}

// land implements land_task.
func land(ctx context.Context, a *request) (gateway.Result, error) {
	var in landArgs
	err := a.read(&in)
	if err == nil {
		in.TaskID, err = a.taskID(ctx, in.TaskID, 0)
	}
	wish := api.LandRequest{Onto: in.Onto, Method: in.Method, FastForward: in.FastForward}
	if err == nil && in.Drop && wish != (api.LandRequest{}) {
		err = signalbox.Invalid("drop", "drop goes without onto, method and fast_forward")
	}
	if err != nil {
		return gateway.Result{}, err
	}
	q := httpio.Outgoing{Method: http.MethodPost, Path: "/api/queue/" + in.TaskID + "/land", Body: wish}
	if in.Drop {
		q.Method, q.Body = http.MethodDelete, nil
	}
	var got api.Landing
	if err := a.ask(ctx, q, &got); err != nil {
		return gateway.Result{}, err
	}
	out := struct {
		QueueID string       `json:"queue_id"`
		Landing *taskLanding `json:"landing"`
		Next    string       `json:"next,omitempty"`
	}{in.TaskID, landingOf(&got), ""}
	if out.Landing.goesOn() {
		out.Next = landingHint(in.TaskID)
	}
	return newResult(out, in.TaskID+": "+got.Text+".", out.Next)
}

// taskLanding describes the landing of a task's work on a branch.
type taskLanding struct {
	State    string `json:"state"`
	Text     string `json:"text"`
	Onto     string `json:"onto"`
	LandTask string `json:"land_task,omitempty"`
	Turn     string `json:"turn,omitempty"`
	Rounds   int    `json:"rounds,omitempty"`
	Commit   string `json:"commit,omitempty"`
	URL      string `json:"url,omitempty"`
}

func landingOf(l *api.Landing) *taskLanding {
	return &taskLanding{l.State, l.Text, l.Onto, l.LandTask, l.Turn, l.Rounds, l.Commit, l.URL}
}

// goesOn reports whether the landing of an ended task continues.
func (l *taskLanding) goesOn() bool {
	return l != nil && (&signalbox.Landing{State: signalbox.LandingState(l.State)}).Active()
}

func landingHint(id string) string {
	return fmt.Sprintf("Its work is on its way: task_status {\"task_id\": %q} says where it is.", id)
}

// toolAgent is an agent as list_agents shows it.
type toolAgent struct {
	Name          string `json:"name"`
	Kind          string `json:"kind"`
	State         string `json:"state"`
	Message       string `json:"message,omitempty"`
	Slots         int    `json:"slots"`
	InUse         int    `json:"in_use"`
	Waiting       int    `json:"waiting"`
	ParallelSlots int    `json:"parallel_slots,omitempty"`
	ParallelInUse int    `json:"parallel_in_use,omitempty"`
}

// agents implements list_agents.
func agents(ctx context.Context, a *request) (gateway.Result, error) {
	if err := a.read(&struct{}{}); err != nil {
		return gateway.Result{}, err
	}
	var all api.Agents
	if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/api/agents"}, &all); err != nil {
		return gateway.Result{}, err
	}
	out := struct {
		Agents []toolAgent `json:"agents"`
	}{Agents: []toolAgent{}}
	lines := []string{}
	for i := range all.Agents {
		v := &all.Agents[i]
		t := toolAgent{
			Name: v.Name, Kind: v.Kind, State: v.State, Message: v.Message, Slots: v.Slots, InUse: v.InUse, Waiting: v.Waiting,
			ParallelSlots: v.IsolatedSlots, ParallelInUse: len(v.Isolated),
		}
		out.Agents = append(out.Agents, t)
		lines = append(lines, t.String())
	}
	if len(lines) == 0 {
		lines = append(lines, "There are no agents: a task that is submitted now waits until one comes.")
	}
	return newResult(out, strings.Join(lines, "\n"))
}

func (t toolAgent) String() string {
	s := fmt.Sprintf("%s (%s): %s, %d of %d slots in use, %d waiting", t.Name, t.Kind, t.State, t.InUse, t.Slots, t.Waiting)
	if t.ParallelSlots > 0 {
		s += fmt.Sprintf(", %d of %d parallel", t.ParallelInUse, t.ParallelSlots)
	}
	if t.Message != "" {
		s += " (" + t.Message + ")"
	}
	return s
}

// toolQueues is the answer of queue_status.
type toolQueues struct {
	State     string          `json:"state"`
	Depth     int             `json:"depth"`
	Running   int             `json:"running"`
	MaxSize   int             `json:"max_size"`
	MaxChats  int             `json:"max_chats"`
	OldestAge int64           `json:"oldest_age_seconds"`
	Agents    api.AgentCounts `json:"agents"`
	// Tools counts the tool calls that are tasks; nil if there can be none.
	Tools  *api.ToolTaskCounts `json:"tool_tasks,omitempty"`
	Queues []queueDepth        `json:"queues"`
	Paused []api.Pause         `json:"paused"`
	// Accounts are the accounts that are not open.
	Accounts []toolAccount `json:"accounts_not_open"`
}

// toolAccount is an account that is not open, as queue_status shows it.
type toolAccount struct {
	Account string     `json:"account"`
	State   string     `json:"state"`
	Text    string     `json:"text"`
	Until   *time.Time `json:"until,omitempty"`
	Agents  []string   `json:"agents"`
	Waiting int        `json:"waiting"` // includes parked tasks
}

type queueDepth struct {
	Queue string `json:"queue"`
	Depth int    `json:"depth"`
}

// queue implements queue_status.
func queue(ctx context.Context, a *request) (gateway.Result, error) {
	if err := a.read(&struct{}{}); err != nil {
		return gateway.Result{}, err
	}
	var status api.Status
	if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/status"}, &status); err != nil {
		return gateway.Result{}, err
	}
	var queue api.Queue
	if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/api/queue", Query: url.Values{"limit": {"1"}}}, &queue); err != nil {
		return gateway.Result{}, err
	}
	var accounts api.Accounts
	if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/api/accounts"}, &accounts); err != nil {
		return gateway.Result{}, err
	}
	out := toolQueues{
		State: status.State, Depth: queue.Depth, Running: queue.DispatchedCount, MaxSize: queue.MaxSize, MaxChats: a.d.Engine.Options().MaxChats,
		OldestAge: queue.OldestAgeSeconds, Agents: status.Agents, Tools: queue.Tools, Queues: []queueDepth{}, Paused: queue.Paused, Accounts: []toolAccount{},
	}
	for _, v := range accounts.Accounts {
		if v.State != string(signalbox.AccountOpen) {
			out.Accounts = append(out.Accounts, toolAccount{v.Name, v.State, v.Text, v.Until, v.Agents, v.Waiting + v.Parked})
		}
	}
	if out.Paused == nil {
		out.Paused = []api.Pause{}
	}
	counts, err := a.d.Engine.Read().Counts(ctx) // no route returns them; whoever may read the queue may read them
	if err != nil {
		return gateway.Result{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(counts.Queues)) {
		if agent, one := signalbox.OnlyAgent(name); counts.Queues[name] > 0 && (!one || a.who.MayUse(agent)) {
			out.Queues = append(out.Queues, queueDepth{name, counts.Queues[name]})
		}
	}
	return newResult(out, out.String())
}

func (q *toolQueues) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d tasks wait, %d run; %d of %d agents are up, %d idle.", q.Depth, q.MaxSize, q.Running, q.Agents.Up, q.Agents.Total, q.Agents.Idle)
	if q.Depth > 0 {
		fmt.Fprintf(&b, " The oldest has waited for %d s.", q.OldestAge)
	}
	if q.Tools != nil {
		fmt.Fprintf(&b, " Of tool calls that are tasks %d wait and %d run.", q.Tools.Waiting, q.Tools.Running)
	}
	for _, one := range q.Queues {
		fmt.Fprintf(&b, "\n%s: %d waiting", one.Queue, one.Depth)
	}
	for _, p := range q.Paused {
		fmt.Fprintf(&b, "\n%s: paused", cmp.Or(p.Queue, "all queues"))
		if p.Reason != "" {
			b.WriteString(", " + p.Reason)
		}
	}
	for _, v := range q.Accounts {
		fmt.Fprintf(&b, "\n%s; %d waiting", v.Text, v.Waiting)
		if len(v.Agents) > 0 {
			b.WriteString(", agents: " + strings.Join(v.Agents, ", "))
		}
	}
	if q.State != "running" {
		fmt.Fprintf(&b, "\nThe director is %s: it starts nothing new.", q.State)
	}
	return b.String()
}
