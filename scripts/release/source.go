package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	product  = "signalbox"
	homepage = "https://github.com/signalbox-ai/signalbox"
)

// release describes the release.
type release struct {
	repo    string
	commit  string
	version string    // 1.2.0 for the tag v1.2.0; for a commit without a tag as by git describe
	at      time.Time // the time of all files in the archives
	goes    string    // the version of Go
}

var versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$`)

// describe returns the commit and the version of a revision.
func describe(ctx context.Context, repo, rev string) (release, error) {
	r := release{}
	var err error
	if r.repo, err = filepath.Abs(repo); err != nil {
		return r, err
	}
	ask := func(args ...string) (string, error) { return output(ctx, r.repo, os.Environ(), "git", args...) }
	if r.commit, err = ask("rev-parse", "--verify", "--end-of-options", rev+"^{commit}"); err != nil {
		return r, err
	}
	described, err := ask("describe", "--tags", "--always", "--abbrev=12", "--match", "v[0-9]*", r.commit)
	if err != nil {
		return r, err
	}
	if r.version = strings.TrimPrefix(described, "v"); !versionForm.MatchString(r.version) {
		return r, fmt.Errorf("the tag %q makes no version: want one such as v1.2.0", described)
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		if epoch, err = ask("log", "-1", "--format=%ct", r.commit); err != nil {
			return r, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return r, fmt.Errorf("SOURCE_DATE_EPOCH is %q: want the seconds since 1970", epoch)
	}
	r.at = time.Unix(seconds, 0).UTC()
	r.goes, err = output(ctx, r.repo, os.Environ(), "go", "env", "GOVERSION")
	return r, err
}

// export writes the files of the commit into a new folder. Uncommitted files are
// never part of a release.
func export(ctx context.Context, r release, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil { //nolint:gosec // sources
		return err
	}
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", r.commit)
	cmd.Dir, cmd.Stderr = r.repo, os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = unpack(pipe, into)
	if err != nil {
		_ = cmd.Process.Kill()
	}
	return errors.Join(err, cmd.Wait())
}

func unpack(from io.Reader, into string) error {
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for in := tar.NewReader(from); ; {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			_, err = io.Copy(io.Discard, from) // read the padding, so that git ends without an error
			return err
		case err != nil:
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(h.Name), 0o755)
		case tar.TypeReg:
			err = write(root, filepath.Clean(h.Name), in, h.FileInfo().Mode().Perm())
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, filepath.Clean(h.Name))
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, from io.Reader, mode os.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
