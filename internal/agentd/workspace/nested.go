package workspace

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxNested bounds how many repositories within a working tree are inspected.
const maxNested = 100

// nested lists the repositories within a working tree, ignored or not, with content that exists
// nowhere else: commits that no remote of theirs is known to have, or uncommitted files. It
// follows no links. It writes what identifies the content to sum.
func (r *Repo) nested(ctx context.Context, sum io.Writer) (list []string, n int, err error) {
	found, err := r.findNested(ctx)
	for i, in := range found {
		path, _ := filepath.Rel(r.Dir, in.Dir)
		path = filepath.ToSlash(path)
		said := "not looked at, as it is one of many"
		if i < maxNested {
			if said, err = in.own(ctx, sum); ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			} else if err != nil {
				said = "cannot be read"
			}
		}
		if said == "" {
			continue
		}
		fmt.Fprintf(sum, "%s\x00%s\x00", path, said)
		if n++; n <= maxListed {
			list = append(list, shown(path+": "+said))
		}
	}
	return list, n, context.Cause(ctx)
}

// findNested finds the repositories within a working tree whose git folders are inside
// it.
func (r *Repo) findNested(ctx context.Context) (found []*Repo, err error) {
	module, err := filepath.EvalSymlinks(r.gitDir)
	if err != nil {
		return nil, err
	}
	var look func(dir string)
	look = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil || ctx.Err() != nil {
			return // it may be gone
		}
		git, bare := false, 0
		for _, e := range entries {
			switch e.Name() {
			case ".git":
				git = true
			case "HEAD", "objects", "refs":
				bare++
			}
		}
		switch {
		case dir == r.Dir:
		case git:
			if in := gitDirOf(dir); in != "" && (inside(in, r.Dir) || inside(in, module)) {
				found = append(found, r.within(dir, in))
			}
		case bare == 3:
			found = append(found, r.within(dir, dir))
			return
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != ".git" {
				look(filepath.Join(dir, e.Name()))
			}
		}
	}
	look(r.Dir)
	return found, context.Cause(ctx)
}

// gitDirOf is the git folder of a working tree; "" if it is a link or cannot be read.
func gitDirOf(dir string) string {
	path := filepath.Join(dir, ".git")
	st, err := os.Lstat(path)
	switch {
	case err != nil:
		return ""
	case st.IsDir():
		return path
	case !st.Mode().IsRegular() || st.Size() > 1<<16:
		return ""
	}
	b, err := os.ReadFile(path)
	to, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if to = filepath.FromSlash(to); !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	to, err = filepath.EvalSymlinks(to)
	if err != nil {
		return ""
	}
	return to
}

// inside reports whether a path lies below a folder.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// within is a repository that a run may have created: nothing is fetched into it.
func (r *Repo) within(dir, gitDir string) *Repo {
	env := append(slices.Clone(r.env), "GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1")
	return &Repo{Dir: dir, gitDir: gitDir, common: gitDir, env: env}
}

// own describes the content of the repository that exists nowhere else; ""
// for none.
func (r *Repo) own(ctx context.Context, sum io.Writer) (string, error) {
	refs, err := r.git(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/stash")
	if err != nil {
		return "", err
	}
	var of, said []string
	for line := range strings.Lines(refs) {
		id, _, _ := strings.Cut(line, " ")
		of = append(of, id)
	}
	if head := r.Head(ctx); head != "" {
		of = append(of, head)
	}
	if len(of) > 0 {
		slices.Sort(of)
		text, err := r.line(ctx, append(append([]string{"rev-list", "--count"}, slices.Compact(of)...), "--not", "--remotes", "--glob="+checkedOut)...)
		if err != nil {
			return "", err
		}
		if n, _ := strconv.Atoi(text); n > 0 {
			said = append(said, Counted(n, "commit")+" that no remote of it has")
			fmt.Fprintf(sum, "%s\x00", of)
		}
	}
	if r.Dir != r.gitDir {
		if err := r.withoutFilters(ctx); err != nil {
			return "", err
		}
		_, n, err := r.uncommitted(ctx, sum, "--untracked-files=normal", "--ignore-submodules=all")
		if err != nil {
			return "", err
		}
		if n > 0 {
			said = append(said, Counted(n, "file")+" not committed")
		}
	}
	return strings.Join(said, ", "), nil
}

// withoutFilters turns off the filters in the repository's own configuration, which git
// status would run.
func (r *Repo) withoutFilters(ctx context.Context) error {
	out, err := r.config(ctx, "--show-scope", "-z", "--name-only", "--get-regexp", `^filter\.`)
	if err != nil {
		return err
	}
	drivers := map[string]bool{}
	fields := strings.Split(out, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if scope, key := fields[i], fields[i+1]; scope != "system" && scope != "global" {
			drivers[key[:strings.LastIndexByte(key, '.')]] = true
		}
	}
	var set [][2]string
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		set = append(set, [2]string{driver + ".clean", ""}, [2]string{driver + ".process", ""}, [2]string{driver + ".required", "false"})
	}
	r.env = withSettings(r.env, set)
	return nil
}

// Counted formats a number of things.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
