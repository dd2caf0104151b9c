package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
)

// Bounds on what is compared and kept.
const (
	maxUntracked     = 20_000   // number of untracked files
	maxUntrackedSize = 10 << 20 // bytes of one untracked file
	maxFiles         = 1000     // in Changes.Files
	maxCommits       = 1000
	maxPatch         = 64 << 20 // bytes of the whole patch
)

// Mark is the content of a working tree at a point in time.
type Mark struct {
	Head string `json:"head,omitempty"` // commit; "" if there is none yet
	Tree string `json:"tree"`           // including uncommitted content
}

// Mark reads the content of the working tree: tracked files, and files that are neither
// tracked nor ignored, up to 20,000 of at most 10 MiB each. Objects that the repository does
// not have yet go to a separate folder, which Mark creates; repository and index stay
// unchanged.
func (r *Repo) Mark(ctx context.Context, objects string) (Mark, error) {
	if err := errors.Join(r.stillThere(), os.MkdirAll(objects, 0o700)); err != nil {
		return Mark{}, err
	}
	index, err := r.copyIndex(objects)
	if err != nil {
		return Mark{}, err
	}
	defer os.Remove(index)
	command := func(args ...string) *exec.Cmd {
		cmd := r.with(r.command(ctx, args...), objects)
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+index)
		return cmd
	}
	run := func(stdin io.Reader, args ...string) (string, error) {
		cmd := command(args...)
		cmd.Stdin = stdin
		return output(cmd)
	}
	if err := r.add(ctx, "--update", command); err != nil {
		return Mark{}, err
	}
	names, err := run(nil, "ls-files", "-z", "--others", "--exclude-standard", "--full-name")
	if err != nil {
		return Mark{}, err
	}
	if list := r.untracked(names); list != "" {
		if _, err := run(strings.NewReader(list), "update-index", "--add", "-z", "--stdin"); err != nil {
			return Mark{}, err
		}
	}
	tree, err := run(nil, "write-tree")
	return Mark{r.commit(ctx, "HEAD"), strings.TrimSpace(tree)}, err
}

// HasTree reports whether the repository has the objects of a Mark's tree.
func (r *Repo) HasTree(ctx context.Context, tree string) bool {
	_, err := r.git(ctx, "cat-file", "-e", "--end-of-options", tree+"^{tree}")
	return err == nil
}

// copyIndex copies the index, so that unchanged files need not be read.
func (r *Repo) copyIndex(dir string) (string, error) {
	to, err := os.CreateTemp(dir, "index-")
	if err != nil {
		return "", err
	}
	defer to.Close()
	from, err := os.Open(filepath.Join(r.gitDir, "index"))
	if errors.Is(err, fs.ErrNotExist) { // a new repository; git rejects an empty file as an index
		return to.Name(), os.Remove(to.Name())
	}
	if err != nil {
		return "", err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return to.Name(), err
}

// untracked selects the files to compare from NUL-terminated paths.
func (r *Repo) untracked(names string) string {
	var list strings.Builder
	n := 0
	for name := range strings.SplitSeq(names, "\x00") {
		if name == "" || strings.HasSuffix(name, "/") { // a repository within
			continue
		}
		st, err := os.Lstat(filepath.Join(r.Dir, filepath.FromSlash(name)))
		if err != nil || st.Size() > maxUntrackedSize || !st.Mode().IsRegular() && st.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if n++; n > maxUntracked {
			break
		}
		list.WriteString(name + "\x00")
	}
	return list.String()
}

// with makes a command read and write a folder of objects beside the
// repository's own.
func (r *Repo) with(cmd *exec.Cmd, objects string) *exec.Cmd {
	theirs := filepath.Join(r.common, "objects")
	if strings.ContainsAny(theirs, `:"`) { // they separate the entries of the list
		theirs = strconv.Quote(theirs)
	}
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+theirs)
	return cmd
}

// Changes compares two marks of the working tree. It writes the whole patch to a file, up to
// 64 MiB; without changes there is no file.
func (r *Repo) Changes(ctx context.Context, from, to Mark, objects, patch string) (*api.Changes, error) {
	c := &api.Changes{Workspace: KindFolder, Dir: r.Dir, Branch: r.branch(ctx), Base: from.Head, Head: to.Head}
	c.Commits = r.Commits(ctx, from.Head, to.Head)
	committed := ""
	if to.Head != "" {
		var err error
		if committed, err = r.line(ctx, "rev-parse", to.Head+"^{tree}"); err != nil {
			return nil, err
		}
	}
	c.Uncommitted = committed != to.Tree
	if from.Tree == to.Tree {
		return c, nil
	}
	out, err := output(r.with(r.command(ctx, "diff-tree", "-r", "-z", "-M", "--raw", "--numstat", from.Tree, to.Tree), objects))
	if err != nil {
		return nil, err
	}
	if err := readFiles(c, out); err != nil {
		return nil, err
	}
	return c, r.writePatch(ctx, c, from, to, objects, patch)
}

// Commits counts the commits of head that base does not have, up to 1,000. Either may
// be "".
func (r *Repo) Commits(ctx context.Context, base, head string) int {
	if head == "" || base == head {
		return 0
	}
	args := []string{"rev-list", "--count", "--max-count=" + strconv.Itoa(maxCommits), head}
	if base != "" {
		args = append(args, "^"+base)
	}
	text, err := r.line(ctx, args...)
	n, _ := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

var statuses = map[byte]string{'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'C': "copied", 'T': "typechange"}

// readFiles parses the output of git diff-tree -z --raw --numstat: first an entry for each
// file, then the figures of each file, in the same order.
func readFiles(c *api.Changes, out string) error {
	next := func() string {
		field, rest, _ := strings.Cut(out, "\x00")
		out = rest
		return field
	}
	var files []api.ChangedFile
	for strings.HasPrefix(out, ":") {
		head := next()
		f := api.ChangedFile{Status: statuses[status(head)]}
		if f.Status == "renamed" || f.Status == "copied" {
			f.From = next()
		}
		f.Path = next()
		files = append(files, f)
	}
	for i := range files {
		f := &files[i]
		fields := strings.SplitN(next(), "\t", 3)
		if len(fields) != 3 || f.Status == "" {
			return errors.New("git diff-tree: it printed something else than was expected")
		}
		if fields[2] == "" { // a renamed file: both paths follow
			next()
			next()
		}
		f.Binary = fields[0] == "-"
		f.Insertions, _ = strconv.ParseInt(fields[0], 10, 64)
		f.Deletions, _ = strconv.ParseInt(fields[1], 10, 64)
		c.Insertions, c.Deletions = c.Insertions+f.Insertions, c.Deletions+f.Deletions
	}
	c.FilesChanged, c.Files = len(files), files[:min(len(files), maxFiles)]
	return nil
}

// status returns the status letter of a raw entry, such as ":100644 100644 1a2b…
// 3c4d… R100".
func status(entry string) byte {
	if i := strings.LastIndexByte(entry, ' '); i >= 0 && i+1 < len(entry) {
		return entry[i+1]
	}
	return 0
}

// writePatch writes the patch to a file, and its beginning to c.
func (r *Repo) writePatch(ctx context.Context, c *api.Changes, from, to Mark, objects, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	w := &bounded{to: f, left: maxPatch}
	var errs bytes.Buffer
	cmd := r.with(r.command(ctx, "-c", "core.quotePath=true", "diff-tree", "-r", "-M", "--patch", "--binary", "--full-index", "--no-color",
		"--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", from.Tree, to.Tree), objects)
	cmd.Stdout, cmd.Stderr = w, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git diff-tree: %w: %s", err, bytes.TrimSpace(errs.Bytes()[:min(errs.Len(), maxError)]))
	}
	c.PatchBytes = w.written
	head := make([]byte, min(c.PatchBytes, api.MaxPatch+1))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	c.Patch = WholeFiles(string(head))
	return nil
}

// WholeFiles returns the beginning of a patch that fits api.MaxPatch, cut at a file
// boundary.
func WholeFiles(patch string) string {
	if len(patch) > api.MaxPatch {
		patch = patch[:max(0, strings.LastIndex(patch[:api.MaxPatch], "\ndiff --git ")+1)]
	}
	return strings.ToValidUTF8(patch, "\uFFFD")
}

// bounded writes up to a number of bytes and discards the rest.
type bounded struct {
	to      io.Writer
	left    int64
	written int64
}

func (b *bounded) Write(p []byte) (int, error) {
	n, err := b.to.Write(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.written += int64(n)
	if err != nil {
		return n, err
	}
	return len(p), nil
}
