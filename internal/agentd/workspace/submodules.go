package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// submodule is a submodule of a working tree.
type submodule struct {
	name, path string
	url        string // as in .gitmodules
	commit     string // the commit to check out
}

// modules describes where the submodules of a working tree come from.
type modules struct {
	had   *Repo  // repository that has them and decides which are active; nil: all are active
	base  string // URL to which relative URLs refer
	cache string // folder of bare repositories, by URL
	files bool   // URLs may be paths
}

// checkedOut is the reference, in a submodule, to its original commit: that may be on none of
// the remote's branches, but is not work.
const checkedOut = "refs/signalbox/checked-out"

// missingError says that a submodule's remote does not have its commit.
type missingError struct{ path, commit, url string }

func (e *missingError) Error() string {
	return fmt.Sprintf("the submodule %s is at %s, which %s does not have: push that commit there", e.path, short(e.commit), e.url)
}

// submodules checks out the repository's active submodules, recursively. Missing ones are
// fetched once for all its worktrees. Nothing is written to the repository's configuration or to
// the submodules of its own checkout.
//
// Errors: missingError.
func (r *Repo) submodules(ctx context.Context) error {
	if !r.hasSubmodules() {
		return nil
	}
	base := r.OriginURL(ctx)
	if base == "" {
		base = strings.TrimSuffix(r.common, string(filepath.Separator)+".git")
	}
	return r.checkOut(ctx, modules{
		had: r.at(r.common), base: base, cache: filepath.Join(r.common, "signalbox", "modules"),
		files: signalbox.LocalRemote(base) && r.takesFiles(ctx),
	})
}

func (r *Repo) hasSubmodules() bool {
	_, err := os.Lstat(filepath.Join(r.Dir, ".gitmodules"))
	return !errors.Is(err, fs.ErrNotExist)
}

// at is the repository with git folder dir, without a working tree.
func (r *Repo) at(dir string) *Repo { return &Repo{Dir: dir, gitDir: dir, common: dir, env: r.env} }

// takesFiles reports whether the user allows cloning submodules from paths, which git
// refuses by default. The repository's own configuration does not count.
func (r *Repo) takesFiles(ctx context.Context) bool {
	out, err := r.git(ctx, "config", "--show-scope", "--get-all", "protocol.file.allow")
	allowed := false
	for line := range strings.Lines(out) {
		switch scope, value, _ := strings.Cut(strings.TrimSpace(line), "\t"); scope {
		case "system", "global":
			allowed = value == "always"
		}
	}
	return err == nil && allowed
}

func (r *Repo) checkOut(ctx context.Context, from modules) error {
	list, err := r.listSubmodules(ctx, from.had)
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := r.checkOutOne(ctx, s, from); err != nil {
			return err
		}
	}
	return nil
}

// listSubmodules lists the active submodules in the index.
func (r *Repo) listSubmodules(ctx context.Context, had *Repo) (list []submodule, err error) {
	if !r.hasSubmodules() {
		return nil, nil
	}
	// From the index: the file may have been replaced by a link.
	told, err := r.settings(ctx, "--blob=:.gitmodules")
	if err != nil {
		return nil, err
	}
	commits, err := gitlinks(func(args ...string) *exec.Cmd { return r.command(ctx, args...) })
	if err != nil {
		return nil, err
	}
	for name, of := range told {
		if commits[of["path"]] == "" {
			continue
		}
		s := submodule{name, of["path"], of["url"], commits[of["path"]]}
		active, err := r.active(ctx, s, had)
		if err != nil {
			return nil, err
		}
		if active && of["update"] != "none" {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b submodule) int { return cmp.Compare(a.path, b.path) })
	return list, nil
}

// settings returns the settings of submodules in a configuration, by name and key. The
// name "" has submodule.active, with one value per line.
func (r *Repo) settings(ctx context.Context, from ...string) (map[string]map[string]string, error) {
	out, err := r.config(ctx, append(from, "-z", "--get-regexp", `^submodule\.`)...)
	all := map[string]map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		key, value, has := strings.Cut(entry, "\n")
		if !has {
			value = "true" // a key without value
		}
		key = strings.TrimPrefix(key, "submodule.")
		name, of := "", key
		if i := strings.LastIndexByte(key, '.'); i >= 0 {
			name, of = key[:i], key[i+1:]
		}
		if all[name] == nil {
			all[name] = map[string]string{}
		}
		if was, ok := all[name][of]; ok && name == "" {
			value = was + "\n" + value
		}
		all[name][of] = value
	}
	return all, err
}

// gitlinks returns the commits of submodules and other repositories within in the index, by
// path. command makes git commands for that index.
func gitlinks(command func(args ...string) *exec.Cmd) (map[string]string, error) {
	out, err := output(command("ls-files", "--stage", "-z", "--full-name", ":/"))
	commits := map[string]string{}
	for entry := range strings.SplitSeq(out, "\x00") {
		if head, path, _ := strings.Cut(entry, "\t"); strings.HasPrefix(head, "160000 ") {
			commits[path] = strings.Fields(head)[1]
		}
	}
	return commits, err
}

// add adds changes to the index: how is --all, or --update for files already in it. For
// repositories within that are already in the index it adds the current commit. Git itself would
// look for changes in them and run programs that their configuration names; and it would add
// other repositories as submodules that nobody can fetch.
func (r *Repo) add(ctx context.Context, how string, command func(args ...string) *exec.Cmd) error {
	links, err := gitlinks(command)
	if err != nil {
		return err
	}
	args := []string{"add", how, "--", ":/"}
	others := ""
	if how == "--all" {
		if others, err = output(command("ls-files", "-z", "--others", "--exclude-standard", "--full-name")); err != nil {
			return err
		}
	}
	for path := range strings.SplitSeq(others, "\x00") {
		if strings.HasSuffix(path, "/") { // a repository without a known source: it is left out
			args = append(args, ":(top,exclude,literal)"+strings.TrimSuffix(path, "/"))
		}
	}
	var moved strings.Builder
	for _, path := range slices.Sorted(maps.Keys(links)) {
		dir := filepath.Join(r.Dir, filepath.FromSlash(path))
		if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
			continue // it is gone
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue
		}
		args = append(args, ":(top,exclude,literal)"+path)
		if git := gitDirOf(dir); git != "" {
			if head := r.within(dir, git).Head(ctx); head != "" && head != links[path] {
				fmt.Fprintf(&moved, "160000 %s\t%s\x00", head, path)
			}
		}
	}
	if _, err := output(command(args...)); err != nil || moved.Len() == 0 {
		return err
	}
	cmd := command("update-index", "-z", "--index-info")
	cmd.Stdin = strings.NewReader(moved.String())
	_, err = output(cmd)
	return err
}

// withSettings is an environment that gives git settings, whatever their names.
func withSettings(env []string, set [][2]string) []string {
	env = append(slices.Clone(env), fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(set)))
	for n, kv := range set {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, kv[1]))
	}
	return env
}

// active reports whether git considers a submodule active in a repository.
func (r *Repo) active(ctx context.Context, s submodule, in *Repo) (bool, error) {
	if in == nil {
		return true, nil
	}
	all, err := in.settings(ctx)
	if err != nil {
		return false, err
	}
	own := all[s.name]
	switch {
	case own["update"] == "none":
		return false, nil
	case own["active"] != "":
		on, err := in.line(ctx, "config", "--type=bool", "--get", "submodule."+s.name+".active")
		return on == "true", err
	case all[""]["active"] == "":
		return own["url"] != "", nil
	}
	out, err := r.git(ctx, append([]string{"ls-files", "-z", "--"}, strings.Split(all[""]["active"], "\n")...)...)
	return slices.Contains(strings.Split(out, "\x00"), s.path), err
}

// checkOutOne checks out a submodule, recursively.
func (r *Repo) checkOutOne(ctx context.Context, s submodule, from modules) error {
	if !safeName(s.name) {
		return fmt.Errorf("the submodule %s has the name %q, which leads out of the repository's folder", s.path, s.name)
	}
	next := modules{cache: from.cache, files: from.files}
	var urls []string
	if from.had != nil {
		dir := filepath.Join(from.had.gitDir, "modules", s.name)
		if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
			next.had = r.at(dir)
		}
		if set, err := from.had.line(ctx, "config", "--get", "submodule."+s.name+".url"); err == nil {
			urls = append(urls, set)
		}
	}
	if told := relativeTo(from.base, s.url); !slices.Contains(urls, told) {
		urls = append(urls, told) // it may have moved since
	}
	next.base = urls[0]
	dir := filepath.Join(r.gitDir, "modules", s.name)
	if err := r.makeModule(ctx, dir, s, next, urls); err != nil {
		return err
	}
	if from.had == nil || from.had.gitDir != r.common { // otherwise it is active for all worktrees
		if _, err := r.git(ctx, "config", "submodule."+s.name+".active", "true"); err != nil {
			return err
		}
	}
	if _, err := r.git(ctx, "submodule", "update", "--checkout", "--force", "--no-fetch", "--", ":(literal)"+s.path); err != nil {
		return err
	}
	sub, err := OpenTree(ctx, filepath.Join(r.Dir, filepath.FromSlash(s.path)), r.env)
	if err != nil {
		return err
	}
	its, err := filepath.EvalSymlinks(sub.gitDir)
	want, werr := filepath.EvalSymlinks(dir)
	if err != nil || werr != nil || its != want || sub.Dir != filepath.Join(r.Dir, filepath.FromSlash(s.path)) {
		return fmt.Errorf("%w: the submodule %s leads to %s", ErrForeign, s.path, sub.Dir)
	}
	return sub.checkOut(ctx, next)
}

// safeName reports whether a submodule's name is safe as the name of a git folder: it leads
// nowhere else and is not within another submodule's.
func safeName(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && name != "." && !slices.Contains(strings.FieldsFunc(name, func(c rune) bool { return c == '/' || c == '\\' }), "..")
}

// makeModule creates the git folder of a submodule in a worktree, with its commit. It uses a
// repository on this host if that has the commit. next.had is the same submodule in the
// source repository.
func (r *Repo) makeModule(ctx context.Context, dir string, s submodule, next modules, urls []string) error {
	for up := filepath.Dir(dir); up != r.gitDir; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, "HEAD")); err == nil {
			return fmt.Errorf("the submodule %s has the name %q, whose folder is within that of another one", s.path, s.name)
		}
	}
	source := next.had
	if source == nil || source.commit(ctx, s.commit) == "" {
		var err error
		if source, err = r.fetchModule(ctx, s, next, urls); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	part := dir + ".part"
	here := &Repo{Dir: filepath.Dir(dir), env: r.env}
	cmd := here.talking(ctx, source.gitDir, "clone", "--quiet", "--no-checkout", "--template=", "--origin="+Origin, "--separate-git-dir="+dir, "--", source.gitDir, part)
	if _, err := output(cmd); err != nil {
		return err
	}
	made := r.at(dir)
	_, err := made.git(ctx, "config", "remote."+Origin+".url", urls[0])
	_, rerr := made.git(ctx, "update-ref", checkedOut, s.commit)
	return errors.Join(err, rerr, os.RemoveAll(part))
}

// fetchModule returns the repository in the cache that has the commit of a
// submodule.
func (r *Repo) fetchModule(ctx context.Context, s submodule, from modules, urls []string) (*Repo, error) {
	var cached []*Repo
	for _, address := range urls {
		sum := sha256.Sum256([]byte(address))
		c := r.at(filepath.Join(from.cache, hex.EncodeToString(sum[:8])))
		if _, err := os.Lstat(c.gitDir); err == nil && c.commit(ctx, s.commit) != "" {
			return c, nil
		}
		cached = append(cached, c)
	}
	var failed []error
	for i, c := range cached {
		if err := fetchable(urls[i], from.files); err != nil {
			failed = append(failed, fmt.Errorf("the submodule %s is at %q: %w", s.path, mask(urls[i]), err))
			continue
		}
		if err := locked(ctx, c.gitDir+".lock", func(lock *os.File) error { return c.fill(ctx, lock, urls[i], s.commit) }); err != nil {
			failed = append(failed, fmt.Errorf("the submodule %s cannot be fetched from %s: %w", s.path, mask(urls[i]), err))
		} else if c.commit(ctx, s.commit) != "" {
			return c, nil
		} else {
			failed = append(failed, &missingError{s.path, s.commit, mask(urls[i])})
		}
	}
	return nil, errors.Join(failed...)
}

// fill fetches from a URL into a bare repository, including a commit that may be on none of
// the branches. The caller holds the repository's lock.
func (r *Repo) fill(ctx context.Context, lock *os.File, address, commit string) error {
	if _, err := os.Lstat(r.gitDir); errors.Is(err, fs.ErrNotExist) {
		part := r.gitDir + ".part"
		if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o700)); err != nil {
			return err
		}
		if _, err := (&Repo{Dir: part, env: r.env}).git(ctx, "init", "--quiet", "--bare", "--template="); err != nil {
			return err
		}
		if err := os.Rename(part, r.gitDir); err != nil {
			return err
		}
	}
	if r.commit(ctx, commit) != "" { // another process has fetched it
		return nil
	}
	age := time.Duration(0) // no other process uses it
	if runtime.GOOS == "windows" {
		age = staleLock // a git may have outlived its agent
	}
	r.clearLocks(age, "refs")
	fetch := func(what string) error {
		_, err := output(holding(lock, r.talking(ctx, address, "fetch", "--quiet", "--prune", "--tags", "--force", "--update-head-ok", "--no-write-fetch-head", "--no-recurse-submodules",
			"--upload-pack=git-upload-pack", "--", address, what)))
		return err
	}
	if err := fetch("+refs/heads/*:refs/heads/*"); err != nil || r.commit(ctx, commit) != "" {
		return err
	}
	if err := fetch(commit); err != nil && ctx.Err() != nil {
		return err
	}
	return nil // without the commit, if the server does not offer it
}

// fetchable refuses addresses that git would not take for a repository reached by https, http,
// ssh or git, or that are paths although paths are not allowed.
func fetchable(address string, files bool) error {
	path, isFile := strings.CutPrefix(address, "file://")
	isFile = isFile || signalbox.LocalRemote(path)
	u, err := url.Parse(address)
	switch {
	case address == "" || strings.HasPrefix(address, "-") || strings.Contains(address, "::") || strings.ContainsFunc(address, func(c rune) bool { return c < ' ' || c == 0x7f }):
	case isFile && files:
		return nil
	case isFile:
		return errors.New("submodules are cloned from paths only into worktrees of repositories that are paths themselves, and where the user allows it: git config --global protocol.file.allow always")
	case strings.Contains(address, "://"):
		if err == nil && slices.Contains([]string{"https", "http", "ssh", "git"}, u.Scheme) {
			return nil
		}
	case scpLike.MatchString(address):
		return nil
	}
	return errors.New("a URL of https, http, ssh or git is expected, or user@host:path")
}

// relativeTo resolves an address that begins with ./ or ../.
func relativeTo(base, address string) string {
	if !strings.HasPrefix(address, "./") && !strings.HasPrefix(address, "../") {
		return address
	}
	base = strings.TrimRight(filepath.ToSlash(base), "/")
	for {
		if rest, ok := strings.CutPrefix(address, "./"); ok {
			address = rest
			continue
		}
		rest, ok := strings.CutPrefix(address, "../")
		i := strings.LastIndexAny(base, "/:")
		if !ok || i < 0 {
			break
		}
		sep := base[i : i+1]
		if base, address = base[:i], rest; sep == ":" {
			return base + ":" + address
		}
	}
	return base + "/" + strings.TrimRight(address, "/")
}
