//go:build unix

package config

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// Reading a named pipe would block.
func TestAPipeInTheWorkingFolderIsRefused(t *testing.T) {
	src, path := workFolder(t, "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(src); err == nil || !strings.Contains(err.Error(), "want a file") {
		t.Error(err)
	}
	if _, err := Trust(path, src.Env); err == nil || !strings.Contains(err.Error(), "want a file") {
		t.Error(err)
	}
}
