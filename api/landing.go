package api

import "time"

// LandRequest is the body of POST /api/queue/{id}/land. An empty one asks for the same as before,
// where work has not landed, with the defaults otherwise.
type LandRequest struct {
	Onto        string `json:"onto,omitempty"`         // branch, or pr for a pull request; default: the branch that the worktree was made from
	Method      string `json:"method,omitempty"`       // rebase or squash; default: as the agent is configured
	FastForward bool   `json:"fast_forward,omitempty"` // a clean checkout of the branch goes forward with it
}

// Landing is the way of a task's work to a branch.
type Landing struct {
	QueueID     string     `json:"queue_id"`        // of the task whose work it is
	State       string     `json:"state"`           // wanted, queued, landing, returned, landed, stands (it needs a person) or dropped
	Text        string     `json:"text"`            // the same in words, with the reason where it did not land
	Place       int        `json:"place,omitempty"` // while it is queued or landing: among those onto the same branch; 1 is next, or lands now
	Onto        string     `json:"onto"`
	Method      string     `json:"method,omitempty"`
	FastForward bool       `json:"fast_forward,omitempty"`
	LandTask    string     `json:"land_task,omitempty"` // the task that lands it, or did so last
	Turn        string     `json:"turn,omitempty"`      // the turn of its conversation that mends it, or did so last
	Rounds      int        `json:"rounds,omitempty"`    // how often in a row it went back to its conversation
	Failures    int        `json:"failures,omitempty"`  // how often in a row landing failed otherwise
	NotBefore   *time.Time `json:"not_before,omitempty"`
	Commit      string     `json:"commit,omitempty"` // of the branch, with the work
	Was         string     `json:"was,omitempty"`    // of the branch before
	URL         string     `json:"url,omitempty"`    // of the pull request
	AskedBy     string     `json:"asked_by,omitempty"`
	AskedAt     time.Time  `json:"asked_at"`
	Since       time.Time  `json:"since"` // it has been in State
}

// Landings is the answer to GET /api/landings: those that are neither over nor dropped, in the
// order in which they were asked for.
type Landings struct {
	Landings []Landing `json:"landings"`
}
