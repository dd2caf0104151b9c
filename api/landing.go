package api

import "time"

// LandRequest is the body of POST /api/queue/{id}/land. An empty body repeats the last request if
// the work has not landed; otherwise it uses the defaults.
type LandRequest struct {
	Onto        string `json:"onto,omitempty"`         // branch, or pr for a pull request; default: the branch that the worktree was made from
	Method      string `json:"method,omitempty"`       // rebase or squash; default: the agent's default
	FastForward bool   `json:"fast_forward,omitempty"` // a clean checkout of the branch is fast-forwarded too
}

// Landing is the progress of a task's work towards a branch.
type Landing struct {
	QueueID     string     `json:"queue_id"`        // of the task whose work it is
	State       string     `json:"state"`           // wanted, queued, landing, returned, landed, stands (it needs a person) or dropped
	Text        string     `json:"text"`            // the same in words, with the reason if it did not land
	Place       int        `json:"place,omitempty"` // while it is queued or landing: its place among those for the same branch; 1 is next or lands now
	Onto        string     `json:"onto"`
	Method      string     `json:"method,omitempty"`
	FastForward bool       `json:"fast_forward,omitempty"`
	LandTask    string     `json:"land_task,omitempty"` // current or last task that lands it
	Turn        string     `json:"turn,omitempty"`      // current or last turn of its conversation that fixes it
	Rounds      int        `json:"rounds,omitempty"`    // how often in a row it went back to its conversation
	Failures    int        `json:"failures,omitempty"`  // how often in a row landing failed for other reasons
	NotBefore   *time.Time `json:"not_before,omitempty"`
	Commit      string     `json:"commit,omitempty"` // head of the branch with the work
	Was         string     `json:"was,omitempty"`    // head of the branch before
	URL         string     `json:"url,omitempty"`    // of the pull request
	AskedBy     string     `json:"asked_by,omitempty"`
	AskedAt     time.Time  `json:"asked_at"`
	Since       time.Time  `json:"since"` // when it entered state
}

// Landings is the answer to GET /api/landings: the landings that are neither done nor dropped, in
// the order in which they were requested.
type Landings struct {
	Landings []Landing `json:"landings"`
}
