package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

const repositoryChecks = "checks:\n  - {name: test, run: 'echo ${HOME} $(pwd)', timeout: 90}\n"

// repository creates a folder with a .signalbox.yaml, and the environment of its
// user.
func repository(t *testing.T, text string) (top string, env func(string) (string, bool)) {
	t.Helper()
	src, path := workFolder(t, "")
	top, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, ".signalbox.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return top, src.Env
}

func TestChecksOfARepositoryCountOnceItsUserHasTrustedThem(t *testing.T) {
	top, env := repository(t, repositoryChecks)
	home, _ := env("HOME")
	if err := os.MkdirAll(filepath.Join(home, ".signalbox"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".signalbox", "config.yaml"), nil, 0o600); err != nil { // an own configuration, which this file does not hide
		t.Fatal(err)
	}
	path := filepath.Join(top, ".signalbox.yaml")
	if list, err := RepositoryChecks(top, env); list != nil || err == nil || !strings.Contains(err.Error(), "signalbox trust "+path) {
		t.Fatalf("%v %v", list, err)
	}
	linked := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(top, linked); err != nil {
		t.Fatal(err)
	}
	if does, err := Trust(filepath.Join(linked, ".signalbox.yaml"), env); err != nil || does != "sets checks" {
		t.Fatalf("%q %v", does, err)
	}
	want := []signalbox.Check{{Name: "test", Run: "echo ${HOME} $(pwd)", TimeoutSeconds: 90}}
	if list, err := RepositoryChecks(top, env); err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v %v", list, err)
	}
	if err := os.WriteFile(path, []byte(repositoryChecks+"# changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := RepositoryChecks(top, env); list != nil || err == nil {
		t.Errorf("a file that has changed: %v %v", list, err)
	}
	other, _ := repository(t, repositoryChecks)
	if list, err := RepositoryChecks(other, env); list != nil || err == nil {
		t.Errorf("the same file elsewhere: %v %v", list, err)
	}
}

func TestRepositoriesWithoutChecks(t *testing.T) {
	top, env := repository(t, "# nothing\n")
	for _, dir := range []string{top, t.TempDir()} {
		if list, err := RepositoryChecks(dir, env); list != nil || err != nil {
			t.Errorf("%v %v", list, err)
		}
	}
}

func TestInvalidFilesOfRepositories(t *testing.T) {
	for text, want := range map[string]string{
		"checks: 3\n":                                      "want a list of checks",
		"checks: [{name: a}]\n":                            "check a has no command",
		"checks: [{name: a, run: [x]}]\n":                  "want a shell command",
		"checks: [{name: '../a', run: x}]\n":               "checks[0]",
		"checks: [{name: a, run: x, when: now}]\n":         "no such key",
		"checks: [{name: a, run: x, timeout: 1.5s}]\n":     "whole seconds",
		"checks: [{name: a, run: x}, {name: a, run: y}]\n": "two checks a",
		"agent: {command: [sh]}\n":                         "no such key",
		"checks: [\n":                                      ".signalbox.yaml",
	} {
		top, env := repository(t, text)
		if list, err := RepositoryChecks(top, env); list != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v", text, list, err)
		}
	}
	top, env := repository(t, repositoryChecks)
	path := filepath.Join(top, ".signalbox.yaml")
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // this is under test
		t.Fatal(err)
	}
	if list, err := RepositoryChecks(top, env); permBits != 0 && (list != nil || err == nil || !strings.Contains(err.Error(), "another user")) {
		t.Errorf("writable by all: %v %v", list, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if list, err := RepositoryChecks(top, env); list != nil || err == nil {
		t.Errorf("a folder: %v %v", list, err)
	}
}
