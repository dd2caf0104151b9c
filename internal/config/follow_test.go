package config_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// following is a followed file and the jobs that were taken from it.
type following struct {
	*world
	taken chan string // names of the jobs
	fail  chan error  // results of the next calls of Take
	now   chan os.Signal
	log   *lines
	path  string
	hours int // how far the file's time is ahead: two writes within one tick of the clock look the same
}

// lines is a log that a test can wait for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// await waits until a text occurs n times in the log.
func (l *lines) await(t *testing.T, text string, n int) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		l.mu.Lock()
		all := l.text.String()
		l.mu.Unlock()
		if strings.Count(all, text) >= n {
			return
		}
		select {
		case <-l.more:
		case <-deadline:
			t.Fatalf("no %q in:\n%s", text, all)
		}
	}
}

// follow follows a named file, for which no trust is needed.
func follow(t *testing.T, every time.Duration, text string) *following {
	return followFile(t, every, text, true)
}

func followFile(t *testing.T, every time.Duration, text string, named bool) *following {
	f := &following{world: newWorld(t), taken: make(chan string), fail: make(chan error, 1), now: make(chan os.Signal, 1), log: &lines{more: make(chan struct{}, 1)}}
	f.path = filepath.Join(f.dir, "signalbox.yaml")
	f.put(text)
	name := ""
	if named {
		name = f.path
	}
	c := f.mustLoad(name)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		c.FollowJobs(ctx, config.Follow{
			Log: slog.New(slog.NewTextHandler(f.log, nil)), Now: f.now, Every: every,
			Take: func(ctx context.Context, jobs []config.Job) error {
				select {
				case err := <-f.fail:
					return err
				default:
				}
				select {
				case f.taken <- names(jobs):
				case <-ctx.Done():
				}
				return nil
			},
		})
	})
	t.Cleanup(func() { stop(); group.Wait() })
	return f
}

// put writes the file, with a modification time that no earlier version had.
func (f *following) put(text string) {
	f.t.Helper()
	f.hours++
	fresh := f.path + ".new"
	f.write(fresh, text)
	at := time.Now().Add(time.Duration(f.hours) * time.Hour)
	if err := os.Chtimes(fresh, at, at); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(fresh, f.path); err != nil {
		f.t.Fatal(err)
	}
}

func (f *following) await(want string) {
	f.t.Helper()
	select {
	case got := <-f.taken:
		if got != want {
			f.t.Fatalf("took %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		f.t.Fatal("the jobs were not loaded")
	}
}

func job(name string) string {
	return "  - {name: " + name + ", schedule: \"0 1 * * *\", prompt: p}\n"
}

func TestJobsFollowTheFile(t *testing.T) {
	f := follow(t, 5*time.Millisecond, "jobs:\n"+job("a"))
	f.await("a")
	f.put("jobs:\n" + job("a") + job("b"))
	f.await("a b")

	f.put("jobs:\n" + job("a") + "  - {name: b, schedule: \"0 0 31 2 *\", prompt: p}\n")
	f.log.await(t, "signalbox.yaml:3: jobs[1].schedule", 1)
	f.put("jobs: [\n")
	f.log.await(t, "it is not YAML", 1)
	f.put("")
	f.log.await(t, "it is gone: write jobs: []", 1)
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.log.await(t, "the file is gone", 1)

	f.put("jobs:\n" + job("c"))
	f.await("c") // and nothing before it
	f.put("jobs: []\n")
	f.await("")
}

// Jobs that cannot be stored now are stored later, and the error is logged
// once.
func TestJobsThatFailAreRetried(t *testing.T) {
	f := follow(t, 5*time.Millisecond, "jobs:\n"+job("a"))
	f.await("a")
	f.fail <- errors.New("the store is away")
	f.put("jobs:\n" + job("b"))
	f.await("b")
	f.log.await(t, "the store is away", 1)
}

func TestJobsAreReadAtOnceOnASignal(t *testing.T) {
	f := follow(t, time.Hour, "jobs:\n"+job("a"))
	f.await("a")
	f.put("jobs:\n" + job("b"))
	f.now <- syscall.SIGHUP
	f.await("b")
	f.put("jobs: 3\n")
	f.now <- syscall.SIGHUP
	f.log.await(t, "want a list of jobs", 1)
}

// If a file of the working folder changes while the program runs, its jobs are
// taken once the user has trusted the new version.
func TestChangedJobsOfAWorkingFolderAreNotTakenUntilTrusted(t *testing.T) {
	f := followFile(t, 5*time.Millisecond, "jobs:\n"+job("a"), false)
	f.await("a")
	f.put("jobs:\n" + job("stranger"))
	f.log.await(t, "it sets jobs, which", 1)
	f.log.await(t, "signalbox trust "+f.path, 1)
	f.now <- syscall.SIGHUP
	f.put("jobs: []\n")
	f.now <- syscall.SIGHUP
	f.put("jobs:\n" + job("b"))
	env := func(name string) (string, bool) { return f.home, name == "HOME" }
	if does, err := config.Trust(f.path, env); err != nil || does != "sets jobs" {
		t.Fatal(does, err)
	}
	f.await("b") // without a signal, and nothing before it
	go func() {  // a late signal makes them be taken again
		for {
			select {
			case <-f.taken:
			case <-t.Context().Done():
				return
			}
		}
	}()

	if err := os.Chmod(f.path, 0o666); err != nil {
		t.Fatal(err)
	}
	f.now <- syscall.SIGHUP
	f.log.await(t, "can write to it", 1)
}
