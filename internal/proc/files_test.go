//go:build unix

package proc_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Programs do not inherit files that the director inherited.
func TestFilesOfTheStarterAreNotHandedOn(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]string{"shares": "true", "owns": "false"} {
		file, err := os.Open(exe)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, flag+role)
		cmd.ExtraFiles = []*os.File{file}
		out, err := cmd.Output()
		file.Close()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: the file is there: %q, %v", role, got, err)
		}
	}
}
