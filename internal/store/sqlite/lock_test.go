package sqlite

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

func TestSecondOpenNamesHolder(t *testing.T) {
	s := openTest(t, Options{})
	_, err := Open(context.Background(), Options{Path: s.backend.opts.Path})
	if signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Fatalf("got %v, want %s", err, signalbox.CodeConflict)
	}
	for _, word := range []string{fmt.Sprintf("process %d ", os.Getpid()), "since 20", "stop it first", "--data"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	mustSubmit(t, s) // the first one is not affected
}

func TestLockOfDeadProcessIsNoObstacle(t *testing.T) {
	path := made(t)
	write(t, path+".lock", []byte("process 1 on nowhere since 2001-01-01T00:00:00Z, and much more text than the next one writes\n"))
	s := openTest(t, Options{Path: path})
	b, err := os.ReadFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("process %d on ", os.Getpid()); !strings.HasPrefix(string(b), want) || strings.Contains(string(b), "much more") {
		t.Errorf("the lock says %q", b)
	}
	mustSubmit(t, s)
}

func TestOpenAgainAfterClose(t *testing.T) {
	path := made(t)
	for range 3 {
		s, err := Open(context.Background(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("the write-ahead log is still there after Close")
	}
}
