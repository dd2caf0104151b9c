package signalbox

import (
	"path"
	"regexp"
	"strings"
)

// The kinds of workspaces.
const (
	WorkspaceFolder   = "folder"   // the agent's own folder, or that of the task's project
	WorkspaceWorktree = "worktree" // a git worktree made for the task
	WorkspaceClone    = "clone"    // a git worktree of a mirror of a remote repository
)

// Workspace is where the run of a task works, as far as its submitter has specified it. ""
// means the agent's default.
type Workspace struct {
	Kind string `json:"kind,omitempty"` // WorkspaceFolder, WorkspaceWorktree or WorkspaceClone
	Repo string `json:"repo,omitempty"` // for a worktree a folder at the agent; for a clone an address valid by ValidRemote
	Base string `json:"base,omitempty"` // valid by ValidRevision
}

// NewWorkspace returns a workspace, or nil if nothing is set.
func NewWorkspace(kind, repo, base string) *Workspace {
	if w := (Workspace{kind, repo, base}); w != (Workspace{}) {
		return &w
	}
	return nil
}

// Said returns the workspace; the zero Workspace for nil.
func (w *Workspace) Said() Workspace {
	if w == nil {
		return Workspace{}
	}
	return *w
}

// Check refuses a workspace that is not valid. Errors name the field.
func (w *Workspace) Check(project *Project) error {
	s := w.Said()
	switch {
	case s.Kind != "" && s.Kind != WorkspaceFolder && s.Kind != WorkspaceWorktree && s.Kind != WorkspaceClone:
		return Invalid("workspace", "workspace is %q: folder, worktree or clone", brief(s.Kind))
	case s.Kind == WorkspaceFolder && (s.Repo != "" || s.Base != ""):
		return Invalid("repo", "repo and base need a workspace that is worktree or clone: a folder is as it is")
	case s.Repo != "" && s.Kind == "":
		return Invalid("repo", "repo needs workspace: worktree, of a folder at the agent, or clone, of a URL")
	case s.Repo != "" && project != nil && project.Path != "":
		return Invalid("repo", "repo and project.path both say where to work: leave out one of them")
	case s.Kind == WorkspaceClone && s.Repo != "" && !ValidRemote(s.Repo):
		return Invalid("repo", "repo is %q: of a clone it is the address of a git repository, such as https://host/owner/name.git or git@host:owner/name.git, without a password, or an absolute path", brief(s.Repo))
	case strings.ContainsFunc(s.Repo, control) || len(s.Repo) > maxRemote:
		return Invalid("repo", "repo is %q: a path of at most %d bytes without control characters", brief(s.Repo), maxRemote)
	case s.Base != "" && !ValidRevision(s.Base):
		return Invalid("base", "base is %q: the name of a branch or tag, or a commit", brief(s.Base))
	}
	return nil
}

// Place returns where a run works, as far as its submitter has specified it.
func (w *Workspace) Place(project *Project) Workplace {
	switch {
	case w.Said().Kind == WorkspaceWorktree, w.Said().Kind == WorkspaceClone, project != nil:
		return WorkplaceOther
	case w.Said().Kind == WorkspaceFolder:
		return WorkplaceFolder
	}
	return WorkplaceDefault
}

func control(c rune) bool { return c < ' ' || c == 0x7f }

// brief returns the beginning of a text for a message.
func brief(s string) string { return strings.ToValidUTF8(s[:min(len(s), 100)], "\uFFFD") }

const maxRemote = 1024 // bytes

var (
	remoteURL = regexp.MustCompile(`^(?:https?|ssh|git)://(?:[A-Za-z0-9._~-]+@)?[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]*/[A-Za-z0-9._~/+@-]+$`)
	remoteSCP = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9._~/+@-]+$`)
	driveRoot = regexp.MustCompile(`^[A-Za-z]:[/\\]`)
)

// ValidRemote reports whether s is the address of a git repository: a URL with the scheme https,
// http, ssh or git, the short form user@host:path, or an absolute path. It refuses passwords,
// other git transports, and texts that git would take for an option.
func ValidRemote(s string) bool {
	if s == "" || len(s) > maxRemote || strings.ContainsFunc(s, control) || strings.Contains(s, "::") {
		return false
	}
	if LocalRemote(s) {
		return true
	}
	_, where, _ := strings.Cut(s, ":")
	return !strings.Contains(s, "..") && !strings.HasPrefix(where, "-") && (remoteURL.MatchString(s) || remoteSCP.MatchString(s))
}

// LocalRemote reports whether an address is a local path.
func LocalRemote(s string) bool { return strings.HasPrefix(s, "/") || driveRoot.MatchString(s) }

// ValidRemotePattern reports whether s is a pattern for addresses, as defined by path.Match:
// * matches any characters except slashes.
func ValidRemotePattern(s string) bool {
	_, err := path.Match(s, "")
	return err == nil && ValidRemote(strings.NewReplacer("*", "x", "?", "x").Replace(s))
}

var revision = regexp.MustCompile(`^[^-~^:?*\[\\\x00-\x20\x7f][^~^:?*\[\\\x00-\x20\x7f]{0,254}$`)

// ValidRevision reports whether s can be the name of a branch or tag, or a commit: a name that
// git accepts, without revision operators.
func ValidRevision(s string) bool {
	if !revision.MatchString(s) || strings.Contains(s, "..") || strings.Contains(s, "@{") || s == "@" || strings.HasSuffix(s, ".") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
