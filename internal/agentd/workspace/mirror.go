package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Origin is the remote of a mirror.
const Origin = "origin"

// OpenMirror opens the mirror of a remote repository, or creates an empty one. A mirror is a
// repository without files, from which worktrees are made. Its branches belong to worktrees;
// those of the remote are refs/remotes/origin/*.
func OpenMirror(ctx context.Context, dir, remote string, environ []string) (*Repo, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := newMirror(ctx, dir, remote, environ); err != nil {
			return nil, err
		}
	}
	r, err := OpenTree(ctx, dir, environ)
	if err != nil {
		return nil, err
	}
	return r, r.configure(ctx, remote)
}

// configure restores settings that worktrees need and a run may have changed: the source
// of large files and relative submodules, and that all submodules are active.
func (r *Repo) configure(ctx context.Context, remote string) error {
	for _, set := range [][2]string{{"remote." + Origin + ".url", remote}, {"submodule.active", "."}} {
		if is, err := r.git(ctx, "config", "--local", "--get-all", set[0]); err == nil && is == set[1]+"\n" {
			continue
		}
		if _, err := r.git(ctx, "config", "--local", "--replace-all", set[0], set[1]); err != nil {
			return err
		}
	}
	return nil
}

// newMirror creates a mirror elsewhere and moves it into place, so that a mirror is always
// complete.
func newMirror(ctx context.Context, dir, remote string, environ []string) error {
	part := dir + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o700)); err != nil {
		return err
	}
	r := &Repo{Dir: part, env: gitEnv(environ)}
	for _, args := range [][]string{
		{"init", "--quiet", "--template="},
		{"config", "remote." + Origin + ".fetch", "+refs/heads/*:refs/remotes/" + Origin + "/*"},
	} {
		if _, err := r.git(ctx, args...); err != nil {
			return err
		}
	}
	return os.Rename(part, dir)
}

// protocols are the git protocols allowed for a remote; a repository must not
// redirect git to others.
func protocols(remote string) string {
	if signalbox.LocalRemote(remote) {
		return "file"
	}
	if u, err := url.Parse(remote); err == nil && u.Scheme != "" {
		return u.Scheme
	}
	return "ssh"
}

// staleLock is the age at which a lock of a reference must belong to a killed git.
const staleLock = time.Hour

// Fetch updates the branches and tags from the remote, and sets HEAD to the remote's. Only one
// Fetch may run at a time. Its progress is written to log.
//
// Errors: git's message, on one line. The mirror may then be partly updated.
func (r *Repo) Fetch(ctx context.Context, remote string, log io.Writer) error {
	r.clearLocks(staleLock, "refs/remotes", "refs/tags")
	out, err := output(r.talking(ctx, remote, "ls-remote", "--symref", "--quiet", "--upload-pack=git-upload-pack", "--", remote, "HEAD"))
	if err != nil {
		return err
	}
	var errs bytes.Buffer
	cmd := r.talking(ctx, remote, "fetch", "--prune", "--tags", "--force", "--no-auto-gc", "--no-write-fetch-head", "--no-recurse-submodules",
		"--upload-pack=git-upload-pack", "--progress", "--", remote, "+refs/heads/*:refs/remotes/"+Origin+"/*")
	cmd.Stderr = io.MultiWriter(&progress{to: log}, &tail{&errs})
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git fetch: %s", cmp.Or(lastLine(errs.String()), err.Error()))
	}
	return r.setHead(ctx, out)
}

// talking is a command that talks to the remote without asking for a password.
func (r *Repo) talking(ctx context.Context, remote string, args ...string) *exec.Cmd {
	cmd := r.command(ctx, args...)
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "GIT_ALLOW_PROTOCOL="+protocols(remote), "GIT_PROTOCOL_FROM_USER=0", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=force")
	cmd.WaitDelay = time.Second // a child process may hold its output open
	return cmd
}

// setHead sets HEAD from the output of ls-remote.
func (r *Repo) setHead(ctx context.Context, said string) error {
	for line := range strings.SplitSeq(said, "\n") {
		left, name, _ := strings.Cut(line, "\t")
		branch, ok := strings.CutPrefix(left, "ref: refs/heads/")
		if name != "HEAD" || !ok {
			continue
		}
		ref := "refs/remotes/" + Origin + "/" + branch
		at := r.commit(ctx, ref)
		if at == "" {
			return nil // the remote has no commit
		}
		if _, err := r.git(ctx, "symbolic-ref", "refs/remotes/"+Origin+"/HEAD", ref); err != nil {
			return err
		}
		_, err := r.git(ctx, "update-ref", "--no-deref", "HEAD", at)
		return err
	}
	return nil
}

// RemoteCommit resolves a branch or tag of the mirror's remote, or a commit; "" resolves to
// the remote's HEAD.
func (r *Repo) RemoteCommit(ctx context.Context, name, remote string) (string, error) {
	for _, ref := range []string{"refs/remotes/" + Origin + "/" + cmp.Or(name, "HEAD"), "refs/tags/" + name, name} {
		if at := r.commit(ctx, ref); at != "" && (name != "" || ref != "") {
			return at, nil
		}
	}
	if name == "" {
		return "", fmt.Errorf("%s has no branch checked out, or no commit yet: name a base", remote)
	}
	return "", fmt.Errorf("%s has no branch, tag or commit %q, from which the worktree is to be made", remote, name)
}

// OriginURL returns the URL of the remote that a repository was cloned from; "" for
// none.
func (r *Repo) OriginURL(ctx context.Context) string {
	address, err := r.line(ctx, "config", "--get", "remote."+Origin+".url")
	if err != nil {
		return ""
	}
	return address
}

// clearLocks removes locks of references that a killed git left behind, if they are at least
// age old.
func (r *Repo) clearLocks(age time.Duration, dirs ...string) {
	old := func(path string, st fs.FileInfo) {
		if strings.HasSuffix(path, ".lock") && st.Mode().IsRegular() && time.Since(st.ModTime()) > age {
			_ = os.Remove(path) // on an error git will name the file
		}
	}
	for _, name := range []string{"HEAD.lock", "packed-refs.lock", "shallow.lock"} {
		if st, err := os.Lstat(filepath.Join(r.common, name)); err == nil {
			old(filepath.Join(r.common, name), st)
		}
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(filepath.Join(r.common, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // it may be gone
			}
			if st, err := e.Info(); err == nil {
				old(path, st)
			}
			return nil
		})
	}
}

// progress writes whole lines. Of lines that replace each other, it writes one every five
// seconds.
type progress struct {
	to   io.Writer
	rest []byte
	last time.Time
}

func (p *progress) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexAny(p.rest, "\r\n")
		if i < 0 {
			break
		}
		line := bytes.TrimSpace(p.rest[:i])
		if len(line) > 0 && (p.rest[i] == '\n' || time.Since(p.last) > 5*time.Second) {
			p.last = time.Now()
			fmt.Fprintf(p.to, "[signalbox] %s\n", line)
		}
		p.rest = p.rest[i+1:]
	}
	if len(p.rest) > maxError {
		p.rest = nil
	}
	return len(b), nil
}

// tail keeps the end of what is written.
type tail struct{ b *bytes.Buffer }

func (t *tail) Write(b []byte) (int, error) {
	t.b.Write(b)
	if n := t.b.Len(); n > 8*maxError {
		t.b.Next(n - 4*maxError)
	}
	return len(b), nil
}

// lastLine is the last line of git's output that is about an error.
func lastLine(said string) string {
	var found []string
	for line := range strings.SplitSeq(strings.ReplaceAll(said, "\r", "\n"), "\n") {
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") || strings.HasPrefix(line, "ERROR: ") {
			found = append(found, line)
		}
	}
	text := strings.Join(found, "; ")
	return text[:min(len(text), maxError)]
}
