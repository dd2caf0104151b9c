// Package workspace creates the folders that runs work in, and reads what they changed: git
// worktrees of the agent's repository, or the agent's own folder if that is in a
// repository.
//
// It runs the git program with the user's configuration, but runs no hooks and no program
// that a repository's configuration names for reading, because a run may have written that.
// It never writes to the index, the branches or the stash of a checkout that it did not
// create.
package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNone says that a folder is in no git repository, or that there is no git program.
var ErrNone = errors.New("it lies in no git repository")

// Repo is a working tree of a git repository.
type Repo struct {
	Dir    string // top folder of the working tree, absolute, without links
	gitDir string // of this working tree
	common string // of the repository
	env    []string
	hooks  bool // the repository's hooks run
}

// Open finds the repository of a folder. environ is the environment of git.
//
// Errors: ErrNone; git's own error if it refuses the repository, for example because
// another user owns it.
func Open(ctx context.Context, dir string, environ []string) (*Repo, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("%w: no git program was found", ErrNone)
	}
	r := &Repo{Dir: dir, env: gitEnv(environ)}
	out, err := r.git(ctx, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		if strings.Contains(err.Error(), "not a git repository") || strings.Contains(err.Error(), "must be run in a work tree") {
			return nil, ErrNone
		}
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(lines) != 3 || lines[0] == "" {
		return nil, ErrNone
	}
	if r.Dir, err = filepath.EvalSymlinks(filepath.FromSlash(lines[0])); err != nil {
		return nil, err
	}
	r.gitDir, r.common = filepath.FromSlash(lines[1]), filepath.FromSlash(lines[2])
	return r, nil
}

// OpenTree opens a folder that must be the top of a working tree itself, not a folder within
// another repository.
func OpenTree(ctx context.Context, dir string, environ []string) (*Repo, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	r, err := Open(ctx, real, environ)
	if err == nil && r.Dir != real {
		err = fmt.Errorf("%s is no longer a separate working tree: it is inside that of %s", dir, r.Dir)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// gitEnv is an environment without variables that make git look elsewhere, prompt, or
// translate.
func gitEnv(environ []string) []string {
	var env []string
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "LC_") && name != "LANGUAGE" {
			env = append(env, kv)
		}
	}
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
}

// noPrograms and noHooks are settings that keep git from running programs that the repository
// chooses.
var (
	noHooks    = []string{"-c", "core.hooksPath=" + os.DevNull}
	noPrograms = []string{"-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "commit.gpgSign=false"}
)

// command is a git command in the working tree. It names the opened repository explicitly: if
// a run has removed the .git link, git would otherwise find a repository around it.
func (r *Repo) command(ctx context.Context, args ...string) *exec.Cmd {
	settings := slices.Clone(noPrograms)
	if !r.hooks {
		settings = append(settings, noHooks...)
	}
	cmd := exec.CommandContext(ctx, "git", append(settings, args...)...)
	cmd.Dir, cmd.Env = r.Dir, r.env
	if r.gitDir != "" {
		cmd.Env = append(r.env[:len(r.env):len(r.env)], "GIT_DIR="+r.gitDir, "GIT_WORK_TREE="+r.Dir)
	}
	return cmd
}

// git runs a command and returns its output.
func (r *Repo) git(ctx context.Context, args ...string) (string, error) {
	return output(r.command(ctx, args...))
}

// maxError bounds quoted messages of git, in bytes.
const maxError = 500

func output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errs.String())
		if said == "" {
			said = err.Error()
		}
		return "", fmt.Errorf("git %s: %s", verb(cmd.Args), said[:min(len(said), maxError)])
	}
	return out.String(), nil
}

// verb is the subcommand of a git command line.
func verb(args []string) string {
	for i := 1; i < len(args); i++ {
		if args[i] == "-c" {
			i++
			continue
		}
		return args[i]
	}
	return ""
}

// line returns the first line of a command's output.
func (r *Repo) line(ctx context.Context, args ...string) (string, error) {
	out, err := r.git(ctx, args...)
	first, _, _ := strings.Cut(out, "\n")
	return first, err
}

// config returns the output of git config; "" if the setting does not exist.
func (r *Repo) config(ctx context.Context, args ...string) (string, error) {
	out, err := r.git(ctx, append([]string{"config"}, args...)...)
	if err != nil && strings.HasSuffix(err.Error(), ": exit status 1") {
		return "", nil
	}
	return out, err
}

// commit resolves a name to a commit; "" if it names none.
func (r *Repo) commit(ctx context.Context, name string) string {
	id, err := r.line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		return ""
	}
	return id
}

// BranchAt returns the branch of that name, or the checked-out branch for "" and HEAD; "" for none.
func (r *Repo) BranchAt(ctx context.Context, name string) string {
	if name == "" || name == "HEAD" {
		return r.branch(ctx)
	}
	if _, err := r.Commit(ctx, "refs/heads/"+name); err != nil {
		return ""
	}
	return name
}

// branch is the checked-out branch; "" for none.
func (r *Repo) branch(ctx context.Context) string {
	name, err := r.line(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return ""
	}
	return name
}
