package atomicfile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/atomicfile"
)

func names(t *testing.T, folder string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestNothingIsLeftBesideAFile: no draft is left after a replacement, or after
// one that failed because a folder is in the way.
func TestNothingIsLeftBesideAFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	for _, text := range []string{"first", "second, which is longer", "3"} {
		if err := atomicfile.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%q %v, want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	taken := filepath.Join(folder, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(taken, []byte("x")); err == nil {
		t.Error("a file in the place of a folder that is not empty")
	}
	if err := atomicfile.Write(filepath.Join(folder, "none", "file"), []byte("x")); err == nil {
		t.Error("a file in no folder")
	}
	if got := names(t, folder); len(got) != 2 {
		t.Errorf("left behind: %q", got)
	}
}
