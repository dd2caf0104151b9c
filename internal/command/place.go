package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/signalbox-ai/signalbox"
)

// folder returns the working folder of a run. A validation_error says that the
// input may not name this folder, any other error that it is missing or
// unusable.
func (t *Tool) folder(input json.RawMessage) (string, error) {
	dir := t.conf.Cwd
	if t.conf.CwdRoot == "" && t.conf.CwdFrom == "" {
		if dir == "" {
			return "", nil
		}
		return dir, isFolder(dir, dir)
	}
	named, err := t.namedFolder(input)
	if err != nil {
		return "", err
	}
	root := cmp.Or(t.conf.CwdRoot, t.conf.Cwd)
	if filepath.IsAbs(named) {
		return t.within(root, filepath.Clean(named), named)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", gone(t.conf.Cwd, err)
	}
	return t.within(root, filepath.Join(dir, named), named)
}

// namedFolder is the working folder that the input names; "" is none.
func (t *Tool) namedFolder(input json.RawMessage) (string, error) {
	name := t.conf.CwdFrom
	if name == "" || len(input) == 0 {
		return "", nil
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal(input, &args); err != nil {
		return "", signalbox.Invalid("arguments", "The arguments are not a JSON object.")
	}
	raw, ok := args[name]
	if !ok || string(raw) == "null" {
		return "", nil
	}
	var dir string
	if json.Unmarshal(raw, &dir) != nil || strings.ContainsRune(dir, 0) || len(dir) > 4096 {
		return "", signalbox.Invalid("arguments."+name, "The argument %s names the working folder: it must be a path such as \"part/of/it\".", shown(name))
	}
	return dir, nil
}

// within resolves the links of both and checks that dir is within root. Its
// error reveals nothing about what exists outside.
func (t *Tool) within(root, dir, named string) (string, error) {
	outside := fmt.Errorf("working folder %s lies outside of %s", dir, root)
	if named != "" {
		outside = signalbox.Invalid("arguments."+t.conf.CwdFrom, "The working folder %s lies outside of %s, where this tool may work: name one within it.", shown(named), root)
	}
	realRoot, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", gone(root, err)
	}
	if !inside(root, dir) && !inside(realRoot, dir) {
		return "", outside
	}
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", gone(dir, err)
	}
	if !inside(realRoot, realDir) {
		return "", outside
	}
	return realDir, isFolder(dir, realDir)
}

// inside compares clean paths.
func inside(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

func isFolder(dir, at string) error {
	info, err := os.Stat(at)
	if err != nil {
		return gone(dir, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("working folder %s is not a folder", dir)
	}
	return nil
}

func gone(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("working folder %s is gone", dir)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("working folder %s is not a folder", dir)
	}
	return fmt.Errorf("working folder %s cannot be entered: %w", dir, bare(err))
}

// program finds the file to start: the file itself, or the first of that name
// in the folders of this process's PATH.
func program(command string) (string, error) {
	if strings.ContainsRune(command, '/') || strings.ContainsRune(command, filepath.Separator) {
		return command, runnable(command)
	}
	var near error
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue // it would depend on this process's working directory
		}
		path := filepath.Join(dir, command)
		err := runnable(path)
		if err == nil {
			return path, nil
		}
		if near == nil && !errors.Is(err, errNotFound) {
			near = err
		}
	}
	if near != nil {
		return "", near
	}
	return "", fmt.Errorf("%w: %s is in no folder of PATH", errNotFound, command)
}

var errNotFound = errors.New("command not found")

// runnable reports why a file cannot be run, as far as that is visible from
// outside.
func runnable(path string) error {
	_, err := exec.LookPath(path) // it has a slash, so PATH is not searched
	switch {
	case err == nil && !regular(path):
		return fmt.Errorf("%s cannot be run: it is a pipe, a socket or a device", path)
	case err == nil:
		return nil
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s is a folder, not a command", path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s", errNotFound, path)
	case errors.Is(err, fs.ErrPermission):
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 == 0 {
			return fmt.Errorf("%s is not executable: chmod +x %s", path, path)
		}
		return fmt.Errorf("%s may not be run by the user of this process", path)
	}
	return fmt.Errorf("%s cannot be run: %w", path, bare(err))
}

// regular reports whether path is a regular file. Opening a pipe without a
// writer would block the run for ever.
func regular(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// notStarted explains why the system did not start a program that looked
// runnable.
func notStarted(err error, path, dir string) error {
	if dir != "" {
		if err := isFolder(dir, dir); err != nil {
			return err
		}
	}
	if err := runnable(path); err != nil {
		return err
	}
	first := firstLine(path)
	switch {
	case errors.Is(err, syscall.ENOEXEC) && first == "":
		return fmt.Errorf("%s is empty: there is nothing to run", path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program that this system can run: a script needs a first line such as #!/bin/sh", path)
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(first, "#!"):
		return fmt.Errorf("%s cannot be started: its interpreter %s does not exist (first line of the script)", path, interpreter(first))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be started: the loader that it names does not exist", path)
	case errors.Is(err, fs.ErrPermission) && strings.HasPrefix(first, "#!"):
		return fmt.Errorf("%s cannot be started: its interpreter %s may not be run", path, interpreter(first))
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%s cannot be started: its arguments and environment are longer than the system takes", path)
	}
	return fmt.Errorf("%s cannot be started: %w", path, bare(err))
}

// firstLine returns the first line of a file, as far as it was read, and a
// blank if the file begins with an empty line.
func firstLine(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return " "
	}
	defer f.Close()
	b := make([]byte, 256)
	n, _ := f.Read(b)
	line, _, more := strings.Cut(string(b[:n]), "\n")
	if line == "" && more {
		return " "
	}
	return line
}

func interpreter(line string) string {
	fields := strings.Fields(strings.TrimPrefix(line, "#!"))
	if len(fields) == 0 {
		return "(none)"
	}
	return shown(fields[0])
}

// bare removes the path from an error whose message already names it.
func bare(err error) error {
	var p *fs.PathError
	var e *exec.Error
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &e):
		return e.Err
	}
	return err
}
