package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/testdisk"
)

// broken replaces every writable descriptor of path by another file, and returns what restores them:
// /dev/full has no space, /dev/null cannot be synced.
func broken(t *testing.T, path, device string) (repair func()) {
	t.Helper()
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	saved := map[int]int{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		fd, bad := strconv.Atoi(e.Name())
		if err != nil || bad != nil || to != path {
			continue
		}
		if saved[fd], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Dup3(int(f.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	if len(saved) == 0 {
		t.Fatalf("%s is not open", path)
	}
	return func() {
		for fd, was := range saved {
			if err := unix.Dup3(was, fd, unix.O_CLOEXEC); err != nil {
				t.Error(err)
			}
			unix.Close(was)
		}
	}
}

func TestFullDiskRefusesAndStoreContinues(t *testing.T) {
	dir := testdisk.New(t, "size=8m")
	s := openTest(t, Options{Path: filepath.Join(dir, "test.db")})
	fullAndAfter(t, s, func() (room func()) {
		filler := filepath.Join(dir, "filler")
		testdisk.Fill(t, filler)
		// A log that has grown before has free space; this fills it, too.
		for n := 0; n < 5000; n++ {
			if _, err := s.Submit(context.Background(), newSubmission()); err != nil {
				break
			}
		}
		return func() { os.Remove(filler) }
	})
}

// A limit of SQLite itself fails in the middle of a batch, not at its end, and needs no privileges.
func TestFullDatabaseRefusesAndStoreContinues(t *testing.T) {
	s := openTest(t, Options{})
	limit := func(pages string) { runSQL(t, s, "PRAGMA max_page_count = "+pages) }
	fullAndAfter(t, s, func() (room func()) {
		limit("1")
		for n := 0; n < 5000; n++ {
			if _, err := s.Submit(context.Background(), newSubmission()); err != nil {
				break
			}
		}
		return func() { limit("1000000000") }
	})
}

// fullAndAfter wants a store to refuse what it has no space for, to report that to each caller, and to work
// as before once there is space.
func fullAndAfter(t *testing.T, s *Store, fill func() (room func())) {
	t.Helper()
	mustSubmit(t, s)
	claimed, err := s.Claim(context.Background(), newClaim("a"))
	if err != nil || !claimed.Found {
		t.Fatal(claimed, err)
	}
	room := fill()
	kept := waiting(t, s)
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			_, err := s.Submit(context.Background(), largeSubmission())
			if signalbox.CodeOf(err) != signalbox.CodeStoreFull || !strings.Contains(err.Error(), "the disk is full") {
				t.Errorf("got %v, want %s that says the disk is full", err, signalbox.CodeStoreFull)
			}
		})
	}
	all.Wait()
	if got := waiting(t, s); got != kept {
		t.Errorf("%d tasks wait, want %d", got, kept)
	}
	exact(t, s)
	room()
	before := s.backend.totals.Seq
	if after := mustSubmit(t, s); after.Seq != before+1 || int(after.Seq) != kept+2 {
		t.Errorf("the next task has number %d: refused ones left gaps", after.Seq)
	}
	if _, err := apply(s, claimed.Task, signalbox.Event{Kind: signalbox.EventAccept}); err != nil {
		t.Error(err)
	}
	exact(t, s)
}

// largeSubmission needs more pages than a nearly full file has.
func largeSubmission() store.Submission {
	sub := newSubmission()
	sub.Request.Prompt = strings.Repeat("x", 100_000)
	return sub
}

func TestFailedSyncIsFatalAndAcknowledgesNothing(t *testing.T) {
	fatal := make(chan error, 10)
	path := filepath.Join(t.TempDir(), "test.db")
	s := openTest(t, Options{Path: path, Fatal: func(err error) { fatal <- err }})
	before := mustSubmit(t, s)
	repair := broken(t, path+"-wal", "/dev/null")
	for range 3 {
		_, err := s.Submit(context.Background(), newSubmission())
		if signalbox.CodeOf(err) != signalbox.CodeStoreFailed || !strings.Contains(err.Error(), "not known") {
			t.Fatalf("got %v", err)
		}
	}
	if len(fatal) != 1 {
		t.Fatalf("Fatal was called %d times, want once", len(fatal))
	}
	if err := <-fatal; !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "check the disk") {
		t.Errorf("%v does not help", err)
	}
	repair()
	// As after the end of the process: this one's view of the log is invalid.
	again := openTest(t, Options{Path: copied(t, path)})
	if got, err := again.Task(context.Background(), before.ID); err != nil || got != before {
		t.Errorf("what was stored before cannot be read: %v", err)
	}
}

// copied copies a database and its log to another folder.
func copied(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + end)
		if err == nil {
			err = os.WriteFile(to+end, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestWriteErrorOnCommitIsFatal(t *testing.T) {
	fatal := make(chan error, 10)
	s := openTest(t, Options{Fatal: func(err error) { fatal <- err }})
	mustSubmit(t, s)
	readOnly, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	defer broken(t, s.backend.opts.Path+"-wal", "/dev/null")()
	for fd := range descriptors(t, "/dev/null") {
		if fd != int(readOnly.Fd()) && fd > 2 {
			if err := unix.Dup3(int(readOnly.Fd()), fd, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Submit(context.Background(), newSubmission()); signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Fatalf("got %v", err)
	}
	if len(fatal) != 1 {
		t.Fatalf("Fatal was called %d times, want once", len(fatal))
	}
}

func descriptors(t *testing.T, path string) map[int]bool {
	t.Helper()
	open := map[int]bool{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if fd, bad := strconv.Atoi(e.Name()); err == nil && bad == nil && to == path {
			open[fd] = true
		}
	}
	return open
}
