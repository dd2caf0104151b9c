package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// forgeTimeout bounds each call of gh or glab.
const forgeTimeout = 2 * time.Minute

// forge is the program that opens pull requests at a remote.
type forge struct {
	program string // path
	kind    string // gh or glab
	repo    string // https://host/owner/name
	r       *Repo
}

// Propose pushes l.Work as the branch l.Onto to the remote of base, and opens a pull request
// for it onto base; "" is the remote's default branch. If one is already open for the branch,
// it is used. If l.Address is set, that is the remote, and base is a branch there. l.Method
// and l.FastForward are ignored.
//
// Errors: as for Land.
func (r *Repo) Propose(ctx context.Context, l Landing, base string) (done Landed, address string, err error) {
	at := *r
	at.hooks = l.Hooks
	r = &at
	if _, err := r.git(ctx, "check-ref-format", "refs/heads/"+l.Onto); err != nil {
		return done, "", refuse("%q is not the name of a branch", l.Onto)
	}
	if l.Address == "" {
		l.Remote, base, err = r.remoteOf(ctx, base)
	} else if base != "" && r.commit(ctx, "refs/remotes/"+l.Remote+"/"+base) == "" {
		base = "" // a tag or commit
	}
	if err != nil {
		return done, "", err
	}
	f, err := r.forgeOf(ctx, l)
	if err != nil {
		return done, "", err
	}
	was, err := r.proposed(ctx, l, base)
	if err != nil {
		return done, "", err
	}
	done = Landed{Onto: l.Onto, Remote: l.Remote, Work: l.Work, Commit: l.Work, Was: was}
	if base != "" {
		done.Commits = r.Commits(ctx, r.commit(ctx, r.fetched(base, l.Remote)), l.Work)
	}
	if was != l.Work {
		if err := r.pushChecked(ctx, l, &done); err != nil {
			return done, "", err
		}
	}
	l.Log("%s is on %s as %s", short(l.Work), l.Remote, l.Onto)
	if address, err = f.open(ctx, l, base); err != nil {
		return done, "", refuse("the branch was pushed to %s as %s, and no pull request was opened: %s; see to it, then land again", l.Remote, l.Onto, oneLine(err))
	}
	return done, address, nil
}

// remoteOf finds the remote and the remote branch that a branch of this repository
// follows.
func (r *Repo) remoteOf(ctx context.Context, base string) (remote, there string, err error) {
	base = strings.TrimPrefix(base, "refs/heads/")
	if base == "" || r.commit(ctx, "refs/heads/"+base) == "" {
		base = r.branch(ctx)
	}
	out, err := r.git(ctx, "remote")
	if err != nil {
		return "", "", err
	}
	remotes := strings.Fields(out)
	if base != "" {
		remote, _ = r.line(ctx, "config", "--get", "branch."+base+".remote") // fails if there is none
		there, _ = r.line(ctx, "config", "--get", "branch."+base+".merge")
	}
	switch {
	case remote != "" && slices.Contains(remotes, remote):
		return remote, strings.TrimPrefix(there, "refs/heads/"), nil
	case slices.Contains(remotes, "origin"):
		remote = "origin"
	case len(remotes) == 1:
		remote = remotes[0]
	default:
		return "", "", refuse("the repository has no remote origin to which a branch could be pushed: git remote add origin URL, or land on a branch")
	}
	if base != "" && r.commit(ctx, "refs/remotes/"+remote+"/"+base) == "" {
		base = "" // a local branch
	}
	return remote, base, nil
}

// scpLike matches an address such as git@host:owner/name.git.
var scpLike = regexp.MustCompile(`^(?:[^@/:]+@)?([^/:]+):([^/].*)$`)

// forgeOf finds the program for the remote.
func (r *Repo) forgeOf(ctx context.Context, l Landing) (*forge, error) {
	raw, remote := l.Address, l.Remote
	if raw == "" {
		var err error
		if raw, err = r.line(ctx, "config", "--get", "remote."+remote+".url"); err != nil {
			return nil, err
		}
	}
	host, path := "", ""
	if m := scpLike.FindStringSubmatch(raw); m != nil && !strings.Contains(raw, "://") {
		host, path = m[1], m[2]
	} else if u, err := url.Parse(raw); err == nil && u.Host != "" {
		host, path = u.Hostname(), u.Path
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	f := &forge{repo: "https://" + host + "/" + path, r: r}
	switch {
	case host == "" || path == "":
		return nil, refuse("%s is %s, where no pull requests are opened: land on a branch; nothing was pushed", remote, mask(raw))
	case strings.Contains(host, "github"):
		f.kind = "gh"
	case strings.Contains(host, "gitlab"):
		f.kind = "glab"
	default: // a company's own host: whichever program is logged in there
		for _, kind := range []string{"gh", "glab"} {
			g := &forge{program: r.find(kind), kind: kind, r: r}
			if g.program == "" {
				continue
			}
			if _, err := g.run(ctx, "", "auth", "status", "--hostname="+host); err == nil {
				f.kind = kind
				break
			}
		}
	}
	if f.kind == "" {
		return nil, refuse("%s is at %q, where neither gh nor glab is logged in, which open pull requests: log in (gh auth login --hostname HOST), or land on a branch; nothing was pushed", remote, host)
	}
	if f.program = r.find(f.kind); f.program == "" {
		return nil, refuse("%s was not found on PATH, which opens pull requests at %s: install it and log in (%s auth login), or land on a branch; nothing was pushed", f.kind, host, f.kind)
	}
	return f, nil
}

// mask removes the password from an address.
func mask(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// find looks a program up on the PATH of the environment in which it will run.
func (r *Repo) find(program string) string {
	for _, kv := range slices.Backward(r.env) {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(path) {
					return path
				}
			}
			break
		}
	}
	return ""
}

// proposed is the commit of the branch at the remote, "" if there is none.
func (r *Repo) proposed(ctx context.Context, l Landing, base string) (string, error) {
	if base != "" {
		to, err := r.remoteTarget(ctx, Landing{Onto: base, Remote: l.Remote, Address: l.Address}, landTarget{ref: "refs/heads/" + base})
		if err != nil {
			return "", err
		}
		if r.Contains(ctx, to.at, l.Work) {
			return "", refuse("nothing to propose: %s of %s has all of the work already", base, l.Remote)
		}
	}
	ref := "refs/heads/" + l.Onto
	out, err := output(r.remotely(ctx, l, "ls-remote", "--quiet", "--", l.address(), ref))
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(out, "\n") {
		at, name, _ := strings.Cut(line, "\t")
		if name != ref {
			continue
		}
		mine := slices.ContainsFunc(l.Past, func(p Landed) bool { return p.Commit == at })
		if !mine && (r.commit(ctx, at) == "" || !r.Contains(ctx, l.Work, at)) {
			return "", refuse("%s has a branch %s with commits that the work does not have: have the conversation merge them, or delete that branch", l.Remote, l.Onto)
		}
		return at, nil
	}
	return "", nil
}

// pushChecked runs the checks on the work and pushes it.
func (r *Repo) pushChecked(ctx context.Context, l Landing, done *Landed) error {
	defer r.RemoveWorktree(context.WithoutCancel(ctx), l.Dir)
	tree, err := r.detached(ctx, l.Dir, l.Work)
	if err != nil {
		return err
	}
	if done.Checked, err = l.check(ctx, tree, false); err != nil {
		return err
	}
	if err := l.Intend(*done); err != nil {
		return err
	}
	if err := r.push(ctx, l, l.Work, done.Was); err != nil {
		return refuse("%s does not take the branch %s: %s", l.Remote, l.Onto, oneLine(err))
	}
	return nil
}

// open opens a pull request, or finds an open one, and returns its URL.
func (f *forge) open(ctx context.Context, l Landing, base string) (string, error) {
	title := l.Title
	if title == "" {
		var err error
		if title, err = f.r.line(ctx, "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%s", l.Work); err != nil {
			return "", err
		}
	}
	body := strings.Join(l.Trailers, "\n")
	if f.kind == "gh" {
		return f.openGitHub(ctx, l.Onto, base, title, body)
	}
	return f.openGitLab(ctx, l.Onto, base, title, body)
}

func (f *forge) openGitHub(ctx context.Context, head, base, title, body string) (string, error) {
	out, err := f.run(ctx, "", "pr", "list", "--repo="+f.repo, "--head="+head, "--state=open", "--json=url")
	if err != nil {
		return "", err
	}
	var open []struct{ URL string }
	if err := json.Unmarshal([]byte(out), &open); err != nil {
		return "", fmt.Errorf("gh pr list: %w", err)
	}
	if len(open) > 0 {
		return open[0].URL, nil
	}
	args := []string{"pr", "create", "--repo=" + f.repo, "--head=" + head, "--title=" + title, "--body-file=-"}
	if base != "" {
		args = append(args, "--base="+base)
	}
	out, err = f.run(ctx, body, args...)
	return address(out), err
}

func (f *forge) openGitLab(ctx context.Context, head, base, title, body string) (string, error) {
	out, err := f.run(ctx, "", "mr", "list", "--repo="+f.repo, "--source-branch="+head, "--output=json")
	if err != nil {
		return "", err
	}
	var open []struct {
		URL string `json:"web_url"`
	}
	if err := json.Unmarshal([]byte(out), &open); err != nil {
		return "", fmt.Errorf("glab mr list: %w", err)
	}
	if len(open) > 0 {
		return open[0].URL, nil
	}
	args := []string{"mr", "create", "--repo=" + f.repo, "--source-branch=" + head, "--title=" + title, "--description=" + body, "--yes"}
	if base != "" {
		args = append(args, "--target-branch="+base)
	}
	out, err = f.run(ctx, "", args...)
	return address(out), err
}

// address is the last URL that a program printed.
func address(out string) string {
	found := ""
	for _, word := range strings.Fields(out) {
		if strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://") {
			found = word
		}
	}
	return found
}

// run runs the program without prompts.
func (f *forge) run(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, forgeTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = f.r.Dir, strings.NewReader(stdin), &out, &errs
	cmd.Env = append(slices.Clone(f.r.env), "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "GLAB_CHECK_UPDATE=false", "NO_PROMPT=1", "NO_COLOR=1")
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errs.String())
		if said == "" || ctx.Err() != nil {
			said = err.Error()
		}
		return "", fmt.Errorf("%s %s %s: %s", f.kind, args[0], args[1], said[:min(len(said), maxError)])
	}
	return out.String(), nil
}
