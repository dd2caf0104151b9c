package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// detached creates a worktree at a commit, on no branch. It removes the folder's content
// first.
func (r *Repo) detached(ctx context.Context, dir, at string) (*Repo, error) {
	if err := r.RemoveWorktree(ctx, dir); err != nil {
		return nil, err
	}
	t, err := r.addWorktree(ctx, dir, "", "--detach", dir, at)
	if err != nil {
		return nil, err
	}
	t.hooks = r.hooks
	return t, nil
}

// rebuild recreates the commits of the work on the checked-out commit, and completes
// done.
func (r *Repo) rebuild(ctx context.Context, l Landing, done *Landed) error {
	fork, known, err := r.forkOf(ctx, l, done.Was)
	if err != nil {
		return err
	}
	// Leave out commits whose change is already on the branch under another ID.
	out, err := r.git(ctx, append([]string{"rev-list", "--reverse", "--topo-order", "--no-merges", "--cherry-pick", "--right-only", done.Was + "..." + l.Work}, known...)...)
	if err != nil {
		return err
	}
	commits := strings.Fields(out)
	merge, err := r.line(ctx, append([]string{"rev-list", "--merges", "--max-count=1", l.Work, "^" + done.Was}, known...)...)
	if err != nil {
		return err
	}
	switch {
	case l.Method == MethodSquash || merge != "":
		if l.Method != MethodSquash {
			l.Log("the work has merges, and how they solved conflicts would be lost in a rebase: it lands as one commit")
		}
		whole, err := r.squashed(ctx, l, fork, commits)
		if err != nil {
			return err
		}
		commits = []string{whole}
	case len(commits) > maxLandCommits:
		return refuse("the work has %d commits, and %d at most land by rebase: land it by squash", len(commits), maxLandCommits)
	}
	for _, c := range commits {
		made, err := r.pick(ctx, l, c)
		if err != nil {
			return err
		}
		if made {
			done.Commits++
		}
	}
	if done.Commits == 0 {
		return refuse("nothing to land: %s has all of the work already", l.Onto)
	}
	done.Commit = r.Head(ctx)
	return nil
}

// forkOf is the last commit of the work that the branch contains, with the same ID or as the
// result of an earlier landing. known excludes, for rev-list, all commits that the branch
// contains.
func (r *Repo) forkOf(ctx context.Context, l Landing, tip string) (fork string, known []string, err error) {
	if fork, err = r.line(ctx, "merge-base", tip, l.Work); err != nil {
		return "", nil, refuse("the work and %s have no commit in common: it was made from another history", l.Onto)
	}
	known = []string{"^" + fork}
	for _, p := range slices.Backward(l.Past) {
		if p.Onto == l.Onto && p.Remote == l.Remote && r.Contains(ctx, tip, p.Commit) && r.Contains(ctx, l.Work, p.Work) {
			if !r.Contains(ctx, fork, p.Commit) { // otherwise the landing was merged into the work since
				fork = p.Work
			}
			return fork, append(known, "^"+p.Work), nil
		}
	}
	return fork, known, nil
}

// squashed makes one commit of all changes of the work since fork.
func (r *Repo) squashed(ctx context.Context, l Landing, fork string, commits []string) (string, error) {
	var subjects []string
	for _, c := range commits[:min(len(commits), maxLandCommits)] {
		s, err := r.line(ctx, "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%s", c)
		if err != nil {
			return "", err
		}
		subjects = append(subjects, s)
	}
	title := l.Title
	if title == "" && len(subjects) == 1 {
		title, subjects = subjects[0], nil
	}
	if title == "" {
		title = "Work of " + l.Task
	}
	if len(subjects) > 1 {
		title += "\n\n- " + strings.Join(subjects, "\n- ")
	}
	return r.line(ctx, append(r.author(ctx), "commit-tree", "-p", fork, "-m", title, l.Work+"^{tree}")...)
}

// pick recreates a commit on the checked-out commit; false if nothing is left to commit.
func (r *Repo) pick(ctx context.Context, l Landing, commit string) (bool, error) {
	if _, err := r.git(ctx, "-c", "rerere.enabled=false", "cherry-pick", "--no-commit", commit); err != nil {
		return false, r.conflict(ctx, l, commit, err)
	}
	// Compare trees: a diff may leave out submodules because of .gitmodules.
	staged, err := r.line(ctx, "write-tree")
	if err != nil {
		return false, err
	}
	if has, err := r.line(ctx, "rev-parse", "HEAD^{tree}"); err != nil || has == staged {
		return false, err
	}
	out, err := r.git(ctx, "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%(trailers:only,unfold)%x00%B", commit)
	f := strings.SplitN(out, "\x00", 5)
	if err == nil && len(f) != 5 {
		err = errors.New("git log: it printed something else than was expected")
	}
	if err != nil {
		return false, err
	}
	args := append(r.author(ctx), "-c", "i18n.commitEncoding=UTF-8", "commit", "--quiet", "--allow-empty", "--allow-empty-message", "--cleanup=whitespace", "--no-gpg-sign", "--file=-")
	if !r.hooks {
		args = append(args, "--no-verify")
	}
	cmd := r.command(ctx, args...)
	cmd.Env = append(cmd.Env, "GIT_EDITOR=true", "GIT_AUTHOR_NAME="+f[0], "GIT_AUTHOR_EMAIL="+f[1], "GIT_AUTHOR_DATE=@"+f[2])
	cmd.Stdin = strings.NewReader(withTrailers(f[4], f[3], l.Trailers))
	if _, err := output(cmd); err != nil {
		if r.hooks {
			return false, &LandError{Kind: LandChecks, Text: "a hook of the repository, or git, did not take the commit: " + oneLine(err), Detail: err.Error()}
		}
		return false, err
	}
	return true, nil
}

// withTrailers adds the missing trailers to a message.
func withTrailers(message, has string, want []string) string {
	message = strings.TrimRight(message, "\n")
	lines := strings.Split(strings.TrimSpace(has), "\n")
	sep := "\n\n"
	if lines[0] != "" {
		sep = "\n"
	}
	for _, t := range want {
		if !slices.Contains(lines, t) {
			message += sep + t
			sep = "\n"
		}
	}
	return message + "\n"
}

// conflict describes which files of a commit conflict with the branch; if there is no
// conflict it returns err.
func (r *Repo) conflict(ctx context.Context, l Landing, commit string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out, derr := r.git(ctx, "diff", "--name-only", "--diff-filter=U", "--no-ext-diff", "-z")
	names := slices.Compact(strings.FieldsFunc(out, func(c rune) bool { return c == 0 }))
	if derr != nil || len(names) == 0 {
		return err
	}
	hunks, derr := r.git(ctx, "diff", "--diff-filter=U", "--no-ext-diff", "--no-textconv", "--no-color")
	if derr != nil {
		hunks = derr.Error()
	}
	onto := l.Onto
	if l.Remote != "" {
		onto = l.Remote + "/" + l.Onto
	}
	text := fmt.Sprintf("conflict with %s at %s in %s", onto, short(r.Head(ctx)), some(names))
	fetch := ""
	if l.Remote != "" && l.Address == "" {
		fetch = "git fetch " + l.Remote + " and "
	}
	detail := fmt.Sprintf("Your work was to land on that branch: %s.\nRun %sgit merge %s (or git rebase %s) in this folder, solve the conflicts, see that everything still works, and commit.\n", text, fetch, onto, onto)
	if subject, err := r.line(ctx, "log", "-1", "--no-show-signature", "--format=%s", commit); err == nil && l.Method == MethodRebase {
		detail += "The commit that does not fit: " + subject + "\n"
	}
	if len(hunks) > maxConflict {
		hunks = hunks[:maxConflict] + "\n[cut off here]\n"
	}
	return &LandError{Kind: LandConflict, Text: text + ": merge it into the work and solve that, then land again", Detail: strings.ToValidUTF8(detail+"\n"+hunks, "\uFFFD")}
}
