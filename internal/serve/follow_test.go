package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
)

// jobsFile loads a configuration with one job.
func jobsFile(t *testing.T) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "signalbox.yaml")
	if err := os.WriteFile(path, []byte("jobs:\n  - {name: nightly, schedule: \"@daily\", prompt: p}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Sources{File: path, Env: func(name string) (string, bool) { return t.TempDir(), name == "HOME" }})
	if err != nil {
		t.Fatal(err)
	}
	return &cfg
}

// A client may give a schedule the name of a job that is later added to the file. That must
// not keep the director from starting: only a running director can remove the schedule.
func TestANameThatIsTakenKeepsNoDirectorDown(t *testing.T) {
	taken := make(chan int)
	calls := 0
	var g lifecycle.Group
	err := FollowJobs(t.Context(), &g, jobsFile(t), slog.New(slog.DiscardHandler), func(ctx context.Context, jobs []signalbox.Schedule) error {
		if calls++; calls == 1 {
			return errors.Join(signalbox.Errorf(signalbox.CodeConflict, "job nightly: schedule sched-a is called nightly already"))
		}
		select {
		case taken <- len(jobs):
		case <-ctx.Done():
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := <-taken; n != 1 {
		t.Errorf("%d jobs were taken, want 1", n)
	}
	if err := g.Stop(); err != nil {
		t.Error(err)
	}
}

func TestJobsThatCannotBeStoredAtTheStart(t *testing.T) {
	away := errors.New("the store is away")
	if err := FollowJobs(t.Context(), new(lifecycle.Group), jobsFile(t), slog.New(slog.DiscardHandler), func(context.Context, []signalbox.Schedule) error { return away }, nil); !errors.Is(err, away) {
		t.Error(err)
	}
}
