package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// The test binary is also the process that is killed, or whose disk fails: with this variable it is not a
// test but plays one of the roles below.
const roleVariable = "SIGNALBOX_SQLITE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := roles[role](os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var roles = map[string]func(path string) error{"work": work, "fail": failSync, "count": countSyncs}

// child returns a command that plays a role on a database.
func child(t *testing.T, role, path string, before ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(before, self, path)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// work runs full cycles on several goroutines and prints each acknowledged change, until it is killed.
func work(path string) error {
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		return err
	}
	var out sync.Mutex
	say := func(word string, t signalbox.Task) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf("%s %s %d\n", word, t.ID, t.Rev)
	}
	fmt.Println("ready")
	errs := make(chan error)
	for n := range 8 {
		go func() {
			for {
				if err := fireAndSay(s, fmt.Sprint("sched-", n), say); err != nil {
					errs <- err
				}
				if err := cycleAndSay(s, fmt.Sprint("agent-", n), say); err != nil {
					errs <- err
				}
			}
		}()
	}
	return <-errs
}

func cycleAndSay(s *Store, agent string, say func(string, signalbox.Task)) error {
	got, err := s.Submit(context.Background(), newSubmission())
	if err != nil {
		return err
	}
	say("submitted", got.Task)
	claimed, err := s.Claim(context.Background(), newClaim(agent))
	if err != nil || !claimed.Found {
		return err // an earlier run left its slot taken: here only submits
	}
	say("claimed", claimed.Task)
	t, err := apply(s, claimed.Task, signalbox.Event{Kind: signalbox.EventAccept})
	if err != nil {
		return err
	}
	say("accepted", t)
	t, err = apply(s, t, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: t.ID}})
	if err == nil {
		say("finished", t)
	}
	return err
}

// acknowledged is the newest acknowledged revision of each task and schedule.
type acknowledged map[string]int64

// killed runs a child on path and kills it after that many lines.
func killed(t *testing.T, path string, lines int, known acknowledged) {
	t.Helper()
	cmd := child(t, "work", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	for n := 0; scan.Scan(); n++ {
		var word, id string
		var rev int64
		if _, err := fmt.Sscan(scan.Text(), &word, &id, &rev); err == nil {
			known[id] = max(known[id], rev)
		}
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child ended by itself: %v", err)
	}
}

func TestKillLosesNothingAcknowledged(t *testing.T) {
	rounds := soak.Pick(4, 500)
	path := filepath.Join(t.TempDir(), "test.db")
	known := acknowledged{}
	for n := range rounds {
		killed(t, path, 50+n*97%900, known)
		s, err := Open(context.Background(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for id, rev := range known {
			if strings.HasPrefix(id, "sched-") {
				checkFired(t, s, id, rev)
				continue
			}
			got, err := s.Task(context.Background(), id)
			if err != nil || got.Rev < rev {
				t.Fatalf("round %d: task %s was acknowledged at revision %d, now it is at %d (%v)", n, id, rev, got.Rev, err)
			}
		}
		if err := invariant.Check(context.Background(), s); err != nil {
			t.Fatalf("round %d: %v", n, err)
		}
		exact(t, s)
		freeAll(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(known) < rounds*5 {
		t.Fatalf("only %d tasks were acknowledged in all: the test proves little", len(known))
	}
	t.Logf("%d tasks in %d lives", len(known), rounds)
}

// freeAll ends what the killed process had in flight, so that the next one finds free slots.
func freeAll(t *testing.T, s *Store) {
	t.Helper()
	flying, err := s.InFlight(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range flying {
		if _, err := apply(s, task, signalbox.Event{Kind: signalbox.EventRelease}); err != nil {
			t.Fatal(err)
		}
	}
}

// failSync submits for ever; at some time its syncs fail.
func failSync(path string) error {
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		return err
	}
	for {
		got, err := s.Submit(context.Background(), newSubmission())
		if err != nil {
			return err
		}
		fmt.Println(got.Task.ID)
	}
}

func TestFailedSyncEndsProcess(t *testing.T) {
	needStrace(t)
	path := filepath.Join(t.TempDir(), "test.db")
	cmd := child(t, "fail", path, "strace", "-f", "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when=60+")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("exit code %d, want 1 (%v)\n%s", cmd.ProcessState.ExitCode(), err, complaint.String())
	}
	for _, word := range []string{"signalbox:", path, "check the disk"} {
		if !strings.Contains(complaint.String(), word) {
			t.Errorf("it said %q, without %q", complaint.String(), word)
		}
	}
	s := openTest(t, Options{Path: path})
	ids := strings.Fields(string(out))
	for _, id := range ids {
		if _, err := s.Task(context.Background(), id); err != nil {
			t.Errorf("acknowledged task %s: %v", id, err)
		}
	}
	if len(ids) == 0 {
		t.Error("nothing was acknowledged before the disk failed: the test proves nothing")
	}
	exact(t, s)
}

func needStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace")
	}
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace cannot trace here: %v: %s", err, out)
	}
}

// countSyncs runs one operation at a time, each between two marks that a trace shows: a getpriority with a
// distinct number.
func countSyncs(path string) error {
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Submit(context.Background(), newSubmission()); err != nil { // the first one also creates the log
		return err
	}
	for n, c := range counted {
		signpost(2 * n)
		if err := c.do(s); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		signpost(2*n + 1)
	}
	return nil
}

const firstPost = 777_000_000

var counted = []struct {
	what   string
	do     func(s *Store) error
	syncs  int
	writes bool
}{
	{"a submit", func(s *Store) error { _, err := s.Submit(context.Background(), newSubmission()); return err }, 1, true},
	{"another submit", func(s *Store) error { _, err := s.Submit(context.Background(), newSubmission()); return err }, 1, true},
	{"a claim", func(s *Store) error { _, err := s.Claim(context.Background(), newClaim("a")); return err }, 1, true},
	{"a claim without a free slot", func(s *Store) error { _, err := s.Claim(context.Background(), newClaim("a")); return err }, 0, false},
	{"a claim from empty queues", func(s *Store) error {
		c := newClaim("b")
		c.Queues = []string{"pool:none"}
		_, err := s.Claim(context.Background(), c)
		return err
	}, 0, false},
	{"a wake with nothing due", func(s *Store) error { _, _, err := s.Wake(context.Background(), clock(), 10); return err }, 0, false},
	{"a prune with nothing old", func(s *Store) error {
		_, err := s.Prune(context.Background(), store.Pruning{Ended: clock().Add(-time.Hour), Limit: 10})
		return err
	}, 0, false},
	{"a resume of what is not paused", func(s *Store) error { _, err := s.Resume(context.Background(), "work", signalbox.Entry{}); return err }, 0, false},
	{"a renewal of no lease", func(s *Store) error { _, err := s.Renew(context.Background(), nil); return err }, 0, false},
	{"a free of a slot that is not withheld", func(s *Store) error { _, err := s.FreeSlot(context.Background(), "a", 0, 1); return err }, 0, false},
	{"a stale change", func(s *Store) error {
		_, err := s.Apply(context.Background(), signalbox.Change{Task: signalbox.Task{ID: "none"}}, clock())
		if signalbox.CodeOf(err) != signalbox.CodeNotFound {
			return fmt.Errorf("got %w", err)
		}
		return nil
	}, 0, false},
	{"reads", func(s *Store) error {
		if _, err := s.Counts(context.Background()); err != nil {
			return err
		}
		_, err := s.InFlight(context.Background())
		return err
	}, 0, false},
}

func TestSyncsPerVerb(t *testing.T) {
	needStrace(t)
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := child(t, "count", filepath.Join(dir, "test.db"), "strace", "-f", "-o", trace, "-e", "trace=fsync,fdatasync,sync_file_range,pwrite64,getpriority")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range counted {
		between := string(b)
		for i, at := range []int{2 * n, 2*n + 1} {
			// Without the closing bracket: a call that is interrupted by one of another thread ends on a
			// later line.
			parts := strings.SplitN(between, fmt.Sprint("getpriority(PRIO_PROCESS, ", firstPost+at), 2)
			if len(parts) != 2 {
				t.Fatalf("%s: mark %d is not in the trace", c.what, at)
			}
			between = parts[1-i]
		}
		syncs := strings.Count(between, "sync(")
		writes := strings.Count(between, "pwrite64(")
		if syncs != c.syncs || (writes > 0) != c.writes {
			t.Errorf("%s: %d syncs and %d writes, want %d syncs, writes %v\n%s", c.what, syncs, writes, c.syncs, c.writes, between)
		}
	}
}
