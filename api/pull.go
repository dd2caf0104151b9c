package api

// Agents that pull cannot be connected to, for example behind NAT or a firewall.
// They register with pull set and no URL, and then send requests to any director:
//
//	POST /api/agents/{name}/claim?wait=30s           a task, or what to stop
//	POST /api/agents/{name}/tasks/{id}/report        accepted, output, finished
//	POST /api/agents/{name}/heartbeat                while it claims nothing, and when it stops
//
// Each request names the instance with which the agent registered, so that two
// agents with the same name are detected (409 conflict). Reports name the fence of
// their execution. If the answer to a claim is lost, the next claim gets the same
// queue_id and fence, which is one execution. An agent has one claim request in
// flight at a time; a second one ends the first.

// PullClaim is the body of POST /api/agents/{name}/claim: what the agent runs and
// how much more it can take. Every claim is also a heartbeat.
type PullClaim struct {
	Instance      string `json:"instance"`
	Slots         int    `json:"slots"`
	IsolatedSlots int    `json:"isolated_slots,omitempty"`
	// HighestFence is the highest fence that it has seen from Director, which is the
	// identity of a director's store.
	HighestFence int64  `json:"highest_fence,omitempty"`
	Director     string `json:"director,omitempty"`
	// Held counts slots that no fence of this director can free: they run a task of
	// another director, or processes that cannot be killed.
	Held int `json:"held,omitempty"`
	// Runs are all its executions.
	Runs    []PullRun     `json:"runs,omitempty"`
	Steps   *AgentSteps   `json:"steps,omitempty"`   // kind llm
	Account *AgentAccount `json:"account,omitempty"` // this and below as in AgentStatus

	WorkDir   string `json:"work_dir,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	FolderID  string `json:"folder_id,omitempty"`
	Full      string `json:"full,omitempty"`
}

// PullRun is an execution at an agent that pulls.
type PullRun struct {
	QueueID  string `json:"queue_id"`
	Fence    int64  `json:"fence"`
	Slot     int    `json:"slot,omitempty"`
	Isolated bool   `json:"isolated,omitempty"`
	Stopping bool   `json:"stopping,omitempty"` // it is being stopped; no further stop is needed
	Ended    bool   `json:"ended,omitempty"`    // it no longer runs; its report follows
	// By the agent's own clock: how long it has run, and how long it has printed
	// nothing.
	RanMS    int64 `json:"ran_ms,omitempty"`
	SilentMS int64 `json:"silent_ms,omitempty"`
	// Note is its current problem, as AgentTaskStatus.Note.
	Note string `json:"note,omitempty"`
}

// PullAnswer is the answer to a claim. It is empty if nothing happened within the
// wait.
type PullAnswer struct {
	Task        *AgentTask `json:"task,omitempty"`        // task to execute, as in POST /task of an agent
	Traceparent string     `json:"traceparent,omitempty"` // of the task
	RunToken    string     `json:"run_token,omitempty"`   // token of the task's run: valid for that execution only
	EnvBy       string     `json:"env_by,omitempty"`      // who set the task's env: admin or caller
	Stop        []PullStop `json:"stop,omitempty"`        // runs to end
	// Ask are executions that the agent should have but did not list. It reports the
	// state of each, or unknown.
	Ask []PullAsk `json:"ask,omitempty"`
}

// PullStop tells an agent to end a run.
type PullStop struct {
	QueueID string `json:"queue_id"`
	Fence   int64  `json:"fence"`
	// Void says that the execution no longer holds its slot: its result does not
	// count, but its final report is kept separately.
	Void bool `json:"void,omitempty"`
}

// PullAsk names an execution that its agent is asked about.
type PullAsk struct {
	QueueID string `json:"queue_id"`
	Fence   int64  `json:"fence"`
}

// PullReport is the body of POST /api/agents/{name}/tasks/{id}/report: one of
// accepted, refused, finished and unknown, or only output. It may be repeated. The
// answer comes after it is stored. It is refused with stale_fence (409) if the
// execution no longer holds its slot; finished is then kept separately.
type PullReport struct {
	Instance string        `json:"instance"`
	Fence    int64         `json:"fence"`
	Accepted *PullAccepted `json:"accepted,omitempty"`
	Refused  *PullRefused  `json:"refused,omitempty"`
	// Finished is the answer of an agent's GET /task/{id} for an ended run.
	Finished *AgentTaskStatus `json:"finished,omitempty"`
	Unknown  bool             `json:"unknown,omitempty"` // the agent does not know the execution
	// Output is a piece of the log; with finished it includes the end of the log.
	Output *PullOutput `json:"output,omitempty"`
	// Note is the current problem of a running task; "" for none.
	Note string `json:"note,omitempty"`
	// Account is what the run learned about its account.
	Account *AgentAccount `json:"account,omitempty"`
	// TokenUsage and CostUSD are what the run has used so far, while it runs.
	TokenUsage *TokenUsage `json:"token_usage,omitempty"`
	CostUSD    float64     `json:"cost_usd,omitempty"`
}

// PullAccepted says that the run is on the agent's disk.
type PullAccepted struct {
	TaskID    string `json:"task_id"` // the agent's own id
	SessionID string `json:"session_id,omitempty"`
}

// PullRefused says that the agent did not accept a task, with the fields of its
// answer to POST /task.
type PullRefused struct {
	Status       int    `json:"status"` // 4xx or 5xx
	Error        string `json:"error,omitempty"`
	Message      string `json:"message"`
	HighestFence int64  `json:"highest_fence,omitempty"` // stale_fence
	BusyWith     string `json:"busy_with,omitempty"`     // agent_busy: the agent's own id of its running task
}

// PullOutput is a piece of a run's log.
type PullOutput struct {
	Seq       int64  `json:"seq"`                 // position of the first byte of text in the whole log
	Text      string `json:"text,omitempty"`      //
	Next      int64  `json:"next"`                // position after it
	Truncated bool   `json:"truncated,omitempty"` // output before seq is no longer available
}

// PullReported is the answer to a report.
type PullReported struct {
	// Next is the position up to which this director has the log. Directors do not
	// share logs: the agent sends the rest again, from there.
	Next int64 `json:"next"`
	// Again says that finished was not accepted, because the director misses a part of
	// the log. The agent sends it again with the log from Next, or with truncated from
	// the oldest byte that it still has.
	Again bool      `json:"again,omitempty"`
	Stop  *PullStop `json:"stop,omitempty"` // the run is to end
}

// ProveRequest asks the other end of a connection to prove that it knows a
// token. It is the first request on the connection.
type ProveRequest struct {
	Selector string `json:"selector"` // identifies the token: its public part (sbxa_ID), else 16 hex digits of a hash
	Nonce    string `json:"nonce"`    // 32 random bytes in hex, new for each connection
	Address  string `json:"address"`  // IP:PORT that the connection was made to, as seen by the connecting side
	MAC      string `json:"mac"`      // HMAC-SHA256 in hex, key of the token, over "client\n" nonce "\n" address
}

// Proof is the answer: HMAC-SHA256 in hex, with the same key, over "server\n"
// nonce "\n" address.
type Proof struct {
	MAC string `json:"mac"`
}
