package signalbox

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Changes is what a run changed in the repository that it worked in, as reported by its agent.
type Changes struct {
	Workspace    string        `json:"workspace,omitempty"` // folder, worktree or clone
	Dir          string        `json:"dir,omitempty"`       // on the agent's host
	Branch       string        `json:"branch,omitempty"`    // "": none was checked out
	Base         string        `json:"base,omitempty"`      // commit that it started from; "": there was none
	Head         string        `json:"head,omitempty"`      // commit at its end
	Commits      int           `json:"commits,omitempty"`   // from base to head
	Uncommitted  bool          `json:"uncommitted,omitempty"`
	FilesChanged int           `json:"files_changed"`
	Insertions   int64         `json:"insertions,omitempty"`
	Deletions    int64         `json:"deletions,omitempty"`
	Files        []ChangedFile `json:"files,omitempty"` // at most MaxChangedFiles
	Patch        string        `json:"patch,omitempty"` // at most MaxPatch bytes: the beginning
	PatchBytes   int64         `json:"patch_bytes,omitempty"`
	BaseBranch   string        `json:"base_branch,omitempty"` // branch that the worktree was made from; "": none, or a commit
}

// ChangedFile is a file that a run changed.
type ChangedFile struct {
	Path       string       `json:"path"`
	From       string       `json:"from,omitempty"` // old path of a renamed or copied file
	Status     ChangeStatus `json:"status"`
	Insertions int64        `json:"insertions,omitempty"`
	Deletions  int64        `json:"deletions,omitempty"`
	Binary     bool         `json:"binary,omitempty"`
}

// ChangeStatus says how a file was changed.
type ChangeStatus string

// The ways in which a file can change.
const (
	FileAdded      ChangeStatus = "added"
	FileModified   ChangeStatus = "modified"
	FileDeleted    ChangeStatus = "deleted"
	FileRenamed    ChangeStatus = "renamed"
	FileCopied     ChangeStatus = "copied"
	FileTypeChange ChangeStatus = "typechange"
)

// Bounds of Changes.
const (
	MaxChangedFiles = 1000
	MaxPatch        = 256 << 10 // bytes
	maxChangedPath  = 4096      // bytes, of a path or a folder
	maxChangedName  = 256       // bytes, of a branch
	maxChanged      = 1 << 53   // of any figure
)

// Cut says why Patch is not the whole patch; "" if it is.
func (c *Changes) Cut() string {
	switch {
	case int64(len(c.Patch)) < c.PatchBytes:
		return fmt.Sprintf("the director keeps %d of the %d bytes of the patch: whole files from the first", len(c.Patch), c.PatchBytes)
	case int64(len(c.Patch)) > c.PatchBytes || strings.ContainsRune(c.Patch, utf8.RuneError):
		return "the patch has bytes that are no UTF-8, which the director keeps replaced"
	}
	return ""
}

// Size returns about how many bytes it takes in a store.
func (c *Changes) Size() int64 {
	if c == nil {
		return 0
	}
	n := len(c.Patch) + len(c.Dir)
	for i := range c.Files {
		n += len(c.Files[i].Path) + len(c.Files[i].From)
	}
	return int64(n)
}

// Summary returns a copy without the patch and the files; nil for nil.
func (c *Changes) Summary() *Changes {
	if c == nil {
		return nil
	}
	s := *c
	s.Files, s.Patch = nil, ""
	return &s
}

var commitForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Sanitize replaces or drops what a correct agent never reports: negative figures, texts that
// are too long or contain control characters, and commits that are not hashes. A patch that is
// too long is dropped; PatchBytes still says that there is one.
func (c *Changes) Sanitize() {
	if c.Workspace != WorkspaceWorktree && c.Workspace != WorkspaceClone {
		c.Workspace = WorkspaceFolder
	}
	c.Dir, c.Branch = printable(c.Dir, maxChangedPath), printable(c.Branch, maxChangedName)
	c.BaseBranch = printable(c.BaseBranch, maxChangedName)
	for _, hash := range []*string{&c.Base, &c.Head} {
		if !commitForm.MatchString(*hash) {
			*hash = ""
		}
	}
	c.Commits = int(figure(int64(c.Commits)))
	if len(c.Files) > MaxChangedFiles {
		c.Files = c.Files[:MaxChangedFiles:MaxChangedFiles]
	}
	c.FilesChanged = max(int(figure(int64(c.FilesChanged))), len(c.Files))
	c.Insertions, c.Deletions = figure(c.Insertions), figure(c.Deletions)
	for i := range c.Files {
		f := &c.Files[i]
		f.Path, f.From = printable(f.Path, maxChangedPath), printable(f.From, maxChangedPath)
		f.Insertions, f.Deletions = figure(f.Insertions), figure(f.Deletions)
		switch f.Status {
		case FileAdded, FileModified, FileDeleted, FileRenamed, FileCopied, FileTypeChange:
		default:
			f.Status = FileModified
		}
	}
	if c.Patch = strings.ToValidUTF8(c.Patch, "\uFFFD"); len(c.Patch) > MaxPatch {
		c.PatchBytes, c.Patch = max(c.PatchBytes, int64(len(c.Patch))), ""
	}
	if c.PatchBytes = figure(c.PatchBytes); c.PatchBytes == 0 {
		c.PatchBytes = int64(len(c.Patch))
	}
}

func figure(n int64) int64 { return min(max(n, 0), maxChanged) }

// printable truncates a text and replaces each character that is not visible.
func printable(s string, most int) string {
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '\uFFFD'
		}
		return r
	}, clip(strings.ToValidUTF8(s, "\uFFFD"), most))
}
