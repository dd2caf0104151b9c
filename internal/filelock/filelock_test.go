package filelock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// opened opens a file or a folder again: a lock belongs to an open file, not to
// a process, so that two openers in one process behave like two processes.
func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if info, serr := os.Stat(path); serr == nil && info.IsDir() {
		f, err = os.Open(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestALockIsOneHoldersUntilItCloses(t *testing.T) {
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Join(folder, "lock")} {
		first, second, third := opened(t, path), opened(t, path), opened(t, path)
		if err := filelock.Take(first); err != nil {
			t.Fatal(err)
		}
		if err := filelock.Take(first); err != nil {
			t.Errorf("its holder cannot lock it again: %v", err)
		}
		for name, lock := range map[string]func(*os.File) error{"take": filelock.Take, "look": filelock.Look} {
			if err := lock(second); !errors.Is(err, filelock.ErrHeld) {
				t.Errorf("%s: %v while another holds it", name, err)
			}
		}
		first.Close()
		if err := errors.Join(filelock.Look(second), filelock.Look(third)); err != nil {
			t.Errorf("two observers: %v", err)
		}
		third.Close()
		if err := filelock.Take(second); err != nil {
			t.Errorf("its holder has closed it: %v", err)
		}
	}
}

func TestWhatCannotBeLockedIsNotHeld(t *testing.T) {
	f := opened(t, filepath.Join(t.TempDir(), "lock"))
	f.Close()
	if err := filelock.Take(f); err == nil || errors.Is(err, filelock.ErrHeld) {
		t.Errorf("%v of a closed file", err)
	}
}

func TestAFileSaysWhoHoldsIt(t *testing.T) {
	f := opened(t, filepath.Join(t.TempDir(), "lock"))
	if who := filelock.Holder(f, "somebody"); who != "somebody" {
		t.Errorf("it is unsigned, and its content is %q", who)
	}
	if _, err := f.WriteString(strings.Repeat("an older holder with much to say ", 20)); err != nil {
		t.Fatal(err)
	}
	if err := filelock.Sign(f); err != nil {
		t.Fatal(err)
	}
	who := filelock.Holder(f, "somebody")
	if !strings.HasPrefix(who, fmt.Sprintf("process %d on ", os.Getpid())) || !strings.Contains(who, " since 20") || strings.Contains(who, "older") {
		t.Errorf("%q", who)
	}
}
