package api

// Agents that pull: nobody can connect to them, as behind NAT or a firewall.
// They register with pull set and no URL, and then ask any director:
//
//	POST /api/agents/{name}/claim?wait=30s           a task, or what to stop
//	POST /api/agents/{name}/tasks/{id}/report        accepted, output, finished
//	POST /api/agents/{name}/heartbeat                while it claims nothing, and when it stops
//
// Each request names the instance with which the agent registered: two that go
// by one name are told apart (409 conflict). Each names the fence of its
// execution: a claim whose answer got lost is answered again with the same
// queue_id and fence, which is one execution. An agent asks for one claim at a
// time; a second one ends the first.

// PullClaim is the body of POST /api/agents/{name}/claim: what the agent does
// and what it can take. Every claim is a heartbeat too.
type PullClaim struct {
	Instance      string `json:"instance"`
	Slots         int    `json:"slots"`
	IsolatedSlots int    `json:"isolated_slots,omitempty"`
	// HighestFence is the highest that it has seen of Director, which is the
	// identity of a director's store.
	HighestFence int64  `json:"highest_fence,omitempty"`
	Director     string `json:"director,omitempty"`
	// Held counts slots that no fence of this director can free: they hold
	// something of another director, or processes that cannot be killed.
	Held int `json:"held,omitempty"`
	// Runs are all executions that it has in hand.
	Runs    []PullRun     `json:"runs,omitempty"`
	Steps   *AgentSteps   `json:"steps,omitempty"`   // kind llm
	Account *AgentAccount `json:"account,omitempty"` // this and below as in AgentStatus

	WorkDir   string `json:"work_dir,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	FolderID  string `json:"folder_id,omitempty"`
	Full      string `json:"full,omitempty"`
}

// PullRun is an execution in the hands of an agent that pulls.
type PullRun struct {
	QueueID  string `json:"queue_id"`
	Fence    int64  `json:"fence"`
	Slot     int    `json:"slot,omitempty"`
	Isolated bool   `json:"isolated,omitempty"`
	Stopping bool   `json:"stopping,omitempty"` // it is being stopped: it need not be told again
	Ended    bool   `json:"ended,omitempty"`    // nothing of it runs; its report is to come
	// By the agent's own clock: how long it has run, and for how long it has
	// printed nothing.
	RanMS    int64 `json:"ran_ms,omitempty"`
	SilentMS int64 `json:"silent_ms,omitempty"`
	// Note is the trouble that it has now, as AgentTaskStatus.Note.
	Note string `json:"note,omitempty"`
}

// PullAnswer is the answer to a claim. Where nothing came within the wait,
// nothing is in it.
type PullAnswer struct {
	Task        *AgentTask `json:"task,omitempty"`        // to execute, as POST /task of an agent has it
	Traceparent string     `json:"traceparent,omitempty"` // of the task
	RunToken    string     `json:"run_token,omitempty"`   // of the task's run: it counts for that execution, and ends with it
	EnvBy       string     `json:"env_by,omitempty"`      // who gave the task's env: admin or caller
	Stop        []PullStop `json:"stop,omitempty"`        // runs to end
	// Ask are executions that the agent should have in hand and did not name:
	// it reports what has become of each, or unknown.
	Ask []PullAsk `json:"ask,omitempty"`
}

// PullStop tells an agent to end a run.
type PullStop struct {
	QueueID string `json:"queue_id"`
	Fence   int64  `json:"fence"`
	// Void says that the execution has been taken away: nobody waits for its
	// result, but its last word is kept aside.
	Void bool `json:"void,omitempty"`
}

// PullAsk names an execution that its agent is asked about.
type PullAsk struct {
	QueueID string `json:"queue_id"`
	Fence   int64  `json:"fence"`
}

// PullReport is the body of POST /api/agents/{name}/tasks/{id}/report: one of
// accepted, refused, finished and unknown, or output alone. It may come twice.
// It is answered when it is stored, and refused with stale_fence (409) when
// the execution has been taken away: what finished says is kept aside then.
type PullReport struct {
	Instance string        `json:"instance"`
	Fence    int64         `json:"fence"`
	Accepted *PullAccepted `json:"accepted,omitempty"`
	Refused  *PullRefused  `json:"refused,omitempty"`
	// Finished is what GET /task/{id} of an agent answers about an ended run.
	Finished *AgentTaskStatus `json:"finished,omitempty"`
	Unknown  bool             `json:"unknown,omitempty"` // the agent does not know the execution
	// Output is a piece of the log; with finished it reaches the end of it.
	Output *PullOutput `json:"output,omitempty"`
	// Note is the trouble that a run has which has not ended; "" for none.
	Note string `json:"note,omitempty"`
	// Account is what the run heard of its account.
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

// PullRefused says that the agent did not take a task: what it would answer to
// POST /task.
type PullRefused struct {
	Status       int    `json:"status"` // 4xx or 5xx
	Error        string `json:"error,omitempty"`
	Message      string `json:"message"`
	HighestFence int64  `json:"highest_fence,omitempty"` // stale_fence
	BusyWith     string `json:"busy_with,omitempty"`     // agent_busy: the agent's own id of what it runs
}

// PullOutput is a piece of a run's log.
type PullOutput struct {
	Seq       int64  `json:"seq"`                 // position of the first byte of text in the whole log
	Text      string `json:"text,omitempty"`      //
	Next      int64  `json:"next"`                // position behind it
	Truncated bool   `json:"truncated,omitempty"` // what lies before seq is no longer there
}

// PullReported is the answer to a report.
type PullReported struct {
	// Next is up to where this director has the log. Directors share no log:
	// what is missing here is sent again, from there.
	Next int64 `json:"next"`
	// Again says that finished was not taken, because the end of the log does
	// not follow what is here: it is sent again with the log from Next, or
	// from its oldest byte that is left, with truncated.
	Again bool      `json:"again,omitempty"`
	Stop  *PullStop `json:"stop,omitempty"` // the run is to end
}

// ProveRequest asks the other end of a connection to prove that it knows a
// token. It is the first request on the connection.
type ProveRequest struct {
	Selector string `json:"selector"` // which token: its public part (sbxa_ID), else 16 hex digits of a hash
	Nonce    string `json:"nonce"`    // 32 random bytes in hex, new for each connection
	Address  string `json:"address"`  // IP:PORT that the connection was made to, as who makes it sees it
	MAC      string `json:"mac"`      // HMAC-SHA256 in hex, key of the token, over "client\n" nonce "\n" address
}

// Proof is the answer: HMAC-SHA256 in hex, with the same key, over "server\n"
// nonce "\n" address.
type Proof struct {
	MAC string `json:"mac"`
}
