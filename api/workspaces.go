package api

import "time"

// AgentWorkspaces is the answer of an agent to GET /workspaces.
type AgentWorkspaces struct {
	Workspaces []AgentWorkspace `json:"workspaces"`        // used last first
	Mirrors    []AgentMirror    `json:"mirrors,omitempty"` // of the repositories that clones are made from
	Bytes      int64            `json:"bytes"`             // on the disk, of all of these

	MaxBytes     int64  `json:"max_bytes,omitempty"`      // workspace.max_bytes; absent: no bound
	MinFreeBytes int64  `json:"min_free_bytes,omitempty"` // workspace.min_free; absent: none
	Full         string `json:"full,omitempty"`           // why no worktree can be made now
}

// AgentWorkspace is a git worktree that an agent has made for a task or conversation.
type AgentWorkspace struct {
	Name         string    `json:"name"`
	Kind         string    `json:"kind,omitempty"` // worktree or clone
	Dir          string    `json:"dir"`
	Repo         string    `json:"repo,omitempty"` // folder, or address of the remote of a clone
	Branch       string    `json:"branch,omitempty"`
	Base         string    `json:"base,omitempty"`        // commit that it was made from
	BaseBranch   string    `json:"base_branch,omitempty"` // branch that this was the tip of
	QueueID      string    `json:"queue_id,omitempty"`    // of the task that it was made for
	SessionID    string    `json:"session_id,omitempty"`  // of its conversation
	CreatedAt    time.Time `json:"created_at,omitzero"`
	LastUsedAt   time.Time `json:"last_used_at,omitzero"`
	Bytes        int64     `json:"bytes"`                    // on the disk, as of a minute ago at most
	BytesAtLeast bool      `json:"bytes_at_least,omitempty"` // it has more files than are counted

	// State is in_use: a run works in it; uncommitted: it has files that no commit has, or a
	// repository within that has something of its own;
	// unlanded: commits that have landed nowhere; landed: they have; empty: there are none;
	// unknown: Message says why.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`

	// What would be lost: the uncommitted files with the worktree, the commits with its branch.
	// The first 50 of each are listed, commits as "1234abcd subject", the newest first. Nested are
	// the repositories within it, ignored by git or not, that have commits which no remote of
	// theirs is known to have, or files that they have not committed: "tools/x: 2 commits that no
	// remote of it has, 1 file not committed". They are lost with the worktree.
	Uncommitted  []string `json:"uncommitted,omitempty"`
	Files        int      `json:"files,omitempty"`
	Commits      []string `json:"commits,omitempty"`
	CommitsCount int      `json:"commits_count,omitempty"`
	Nested       []string `json:"nested,omitempty"`
	NestedCount  int      `json:"nested_count,omitempty"`
	// Seen stands for what is there now: discarding takes it as the proof that the caller was
	// told. "" for a worktree in which nothing would be lost, or in use.
	Seen string `json:"seen,omitempty"`
}

// Workspaces is the answer to GET /api/workspaces.
type Workspaces struct {
	Workspaces []Workspace      `json:"workspaces"` // by agent, those of each used last first
	Agents     []WorkspaceAgent `json:"agents"`     // all that were asked
}

// Workspace is a worktree, with its agent.
type Workspace struct {
	Agent string `json:"agent"`
	AgentWorkspace
}

// WorkspaceAgent is what an agent has of worktrees as a whole.
type WorkspaceAgent struct {
	Agent   string        `json:"agent"`
	Bytes   int64         `json:"bytes"` // on its disk, the mirrors of clones included
	Mirrors []AgentMirror `json:"mirrors,omitempty"`

	MaxBytes     int64  `json:"max_bytes,omitempty"` // this and below as in AgentWorkspaces
	MinFreeBytes int64  `json:"min_free_bytes,omitempty"`
	Full         string `json:"full,omitempty"`

	Message string `json:"message,omitempty"` // why it could not be asked: it may have worktrees
}

// The states of worktrees.
const (
	WorkspaceInUse       = "in_use"
	WorkspaceUncommitted = "uncommitted"
	WorkspaceUnlanded    = "unlanded"
	WorkspaceLanded      = "landed"
	WorkspaceEmpty       = "empty"
	WorkspaceUnknown     = "unknown"
)

// AgentMirror is a repository that an agent keeps of a remote, to make worktrees from.
type AgentMirror struct {
	Repo       string    `json:"repo"` // address of the remote
	Bytes      int64     `json:"bytes"`
	Worktrees  int       `json:"worktrees"` // that are made from it
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
}

// DiscardWorkspace is the query of DELETE /workspaces/{name}.
type DiscardWorkspace struct {
	// Seen is that of the worktree in the list. Without it, or if something has changed since,
	// a worktree in which something would be lost stays.
	Seen string
	// DeleteBranch deletes the branch with its commits. Else it stays, unless it has none that
	// have not landed.
	DeleteBranch bool
}

// WorkspaceDiscarded is the answer to DELETE /workspaces/{name}.
type WorkspaceDiscarded struct {
	Name          string `json:"name"`
	Branch        string `json:"branch"`
	BranchDeleted bool   `json:"branch_deleted"`
	Bytes         int64  `json:"bytes"` // that were freed, about
}
