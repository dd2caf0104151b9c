//go:build linux

package confine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

// The folder with the director's key is invisible in a sandbox, even if it is
// inside a shown folder, such as the tool's own.
func TestSandboxHidesTheDirectorsOwnFolder(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	link := filepath.Join(t.TempDir(), "link")
	for _, err := range []error{
		os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "secret.key"), []byte("the key"), 0o600),
		os.WriteFile(filepath.Join(dir, "tool"), []byte("a tool"), 0o600), os.Symlink(dir, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := confine.Open(confine.Options{Name: name(t), Hidden: []string{filepath.Join(link, "data"), filepath.Join(dir, "absent")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	look := "cat " + dir + "/tool " + link + "/tool; cat " + data + "/secret.key " + link + "/data/secret.key; true"
	t.Run("bubblewrap", func(t *testing.T) {
		need(t, h, "bubblewrap")
		for _, s := range []confine.Sandbox{{Read: []string{dir, link}}, {Write: []string{dir, link}}, {Read: []string{link}, Write: []string{dir}}} {
			s.On, s.Required, s.Kind = true, true, "bubblewrap"
			r := start(t, h, confine.Limits{}, s, look)
			r.finish()
			if out := r.out.String(); strings.Contains(out, "the key") || strings.Count(out, "a tool") != 2 {
				t.Errorf("%+v: %s", s, out)
			}
			r.done()
		}
		r := start(t, h, confine.Limits{}, confine.Sandbox{On: true, Kind: "bubblewrap", Read: []string{data}}, "cat "+data+"/secret.key")
		r.finish()
		if out := r.out.String(); out != "the key" {
			t.Errorf("it is configured, and is not visible: %s", out)
		}
	})
	t.Run("landlock", func(t *testing.T) {
		need(t, h, "landlock")
		box, err := h.Take(confine.Limits{}, confine.Sandbox{On: true, Required: true, Kind: "landlock", Read: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := box.Free(); err != nil {
				t.Error(err)
			}
		}()
		if err := box.Start(exec.Command("/bin/true")); err == nil || !strings.Contains(err.Error(), "keep them apart") {
			t.Errorf("%v", err)
		}
	})
}
