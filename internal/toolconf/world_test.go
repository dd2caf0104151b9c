package toolconf_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// world is a folder with files and an environment.
type world struct {
	dir string
	env map[string]string
}

func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), env: map[string]string{"TOKEN": "s3same", "EMPTY": ""}}
	for name, text := range files {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// load reads files in the given order.
func (w *world) load(names ...string) (toolconf.Config, conffile.Problems) {
	src := toolconf.Source{Home: "/home/ada", Dir: "/srv/start", Env: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }}
	for _, name := range names {
		src.Files = append(src.Files, toolconf.File{Name: name, Path: filepath.Join(w.dir, name), From: "--tools"})
	}
	return toolconf.Load(src)
}

func (w *world) mustLoad(t testing.TB, names ...string) toolconf.Config {
	t.Helper()
	c, bad := w.load(names...)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return c
}

func problems(bad conffile.Problems) []string {
	var out []string
	for _, p := range bad {
		out = append(out, p.String())
	}
	return out
}

func notes(c toolconf.Config) []string {
	var out []string
	for _, n := range c.Notes {
		level := "info "
		if n.Warning {
			level = "warn "
		}
		out = append(out, level+n.String())
	}
	return out
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
