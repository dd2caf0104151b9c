//go:build unix

package config_test

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// A pipe in place of the file that nobody writes to blocks neither the next
// jobs nor the end of the program.
func TestAPipeInPlaceOfTheFile(t *testing.T) {
	f := follow(t, 5*time.Millisecond, "jobs:\n"+job("a"))
	f.await("a")
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(f.path, 0o600); err != nil {
		t.Fatal(err)
	}
	f.log.await(t, "it is a pipe or a device, want a file", 1)
	f.now <- syscall.SIGHUP
	f.put("jobs:\n" + job("b"))
	f.await("b")
}
