package api

import "time"

// AgentWorkspaces is the answer of an agent to GET /workspaces.
type AgentWorkspaces struct {
	Workspaces []AgentWorkspace `json:"workspaces"`        // last used first
	Mirrors    []AgentMirror    `json:"mirrors,omitempty"` // mirrors of the repositories that clones are made from
	Bytes      int64            `json:"bytes"`             // disk usage of all of these

	MaxBytes     int64  `json:"max_bytes,omitempty"`      // workspace.max_bytes; absent: no limit
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
	BaseBranch   string    `json:"base_branch,omitempty"` // branch whose tip was base
	QueueID      string    `json:"queue_id,omitempty"`    // the task that it was made for
	SessionID    string    `json:"session_id,omitempty"`  // of its conversation
	CreatedAt    time.Time `json:"created_at,omitzero"`
	LastUsedAt   time.Time `json:"last_used_at,omitzero"`
	Bytes        int64     `json:"bytes"`                    // disk usage, at most a minute old
	BytesAtLeast bool      `json:"bytes_at_least,omitempty"` // it has more files than are counted

	// State is in_use: a run works in it; uncommitted: it has uncommitted files, or a nested
	// repository with changes of its own;
	// unlanded: it has commits that have not landed; landed: all its commits have landed; empty:
	// it has no commits; unknown: Message says why.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`

	// What would be lost: the uncommitted files with the worktree, the commits with its branch.
	// The first 50 of each are listed, commits as "1234abcd subject", newest first. Nested lists
	// the repositories inside the worktree, ignored by git or not, that have uncommitted files or
	// commits that are on none of their remotes: "tools/x: 2 commits that no
	// remote of it has, 1 file not committed". They are lost with the worktree.
	Uncommitted  []string `json:"uncommitted,omitempty"`
	Files        int      `json:"files,omitempty"`
	Commits      []string `json:"commits,omitempty"`
	CommitsCount int      `json:"commits_count,omitempty"`
	Nested       []string `json:"nested,omitempty"`
	NestedCount  int      `json:"nested_count,omitempty"`
	// Seen identifies the current content. A discard requires it as proof that the caller knows
	// what will be lost. "" if nothing would be lost, or if it is in use.
	Seen string `json:"seen,omitempty"`
}

// Workspaces is the answer to GET /api/workspaces.
type Workspaces struct {
	Workspaces []Workspace      `json:"workspaces"` // by agent, last used first
	Agents     []WorkspaceAgent `json:"agents"`     // all agents that were asked
}

// Workspace is a worktree, with its agent.
type Workspace struct {
	Agent string `json:"agent"`
	AgentWorkspace
}

// WorkspaceAgent sums up the worktrees of an agent.
type WorkspaceAgent struct {
	Agent   string        `json:"agent"`
	Bytes   int64         `json:"bytes"` // disk usage, including the mirrors of clones
	Mirrors []AgentMirror `json:"mirrors,omitempty"`

	MaxBytes     int64  `json:"max_bytes,omitempty"` // this and below as in AgentWorkspaces
	MinFreeBytes int64  `json:"min_free_bytes,omitempty"`
	Full         string `json:"full,omitempty"`

	Message string `json:"message,omitempty"` // why it could not be asked; it may have worktrees
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

// AgentMirror is an agent's copy of a remote repository, from which it makes worktrees.
type AgentMirror struct {
	Repo       string    `json:"repo"` // address of the remote
	Bytes      int64     `json:"bytes"`
	Worktrees  int       `json:"worktrees"` // worktrees made from it
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
}

// DiscardWorkspace is the query of DELETE /workspaces/{name}.
type DiscardWorkspace struct {
	// Seen is AgentWorkspace.Seen of the worktree. Without it, or if something has changed
	// since, a worktree in which something would be lost is kept.
	Seen string
	// DeleteBranch deletes the branch with its commits. Otherwise the branch is kept unless
	// all its commits have landed.
	DeleteBranch bool
}

// WorkspaceDiscarded is the answer to DELETE /workspaces/{name}.
type WorkspaceDiscarded struct {
	Name          string `json:"name"`
	Branch        string `json:"branch"`
	BranchDeleted bool   `json:"branch_deleted"`
	Bytes         int64  `json:"bytes"` // about how many were freed
}
