package standalone_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/standalone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func openStore(t *testing.T, folder string) *standalone.Store {
	t.Helper()
	b, err := standalone.OpenStore(folder, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func put(t *testing.T, b *standalone.Store, s signalbox.Schedule, runs ...signalbox.ScheduleRun) signalbox.Schedule {
	t.Helper()
	got, err := b.Put(t.Context(), s, runs, signalbox.Entry{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func row(name string) signalbox.Schedule {
	on := true
	return signalbox.Schedule{
		ID: "sched-" + name, Name: name, Cron: "@daily", Timezone: "Europe/Berlin", Enabled: true, Source: signalbox.ScheduleFromConfig, Prompt: "p",
		Thinking: &on, Project: &signalbox.Project{Path: "/srv"}, MissedWindow: time.Hour, Cursor: noon, CreatedAt: noon,
	}
}

func run(n int, status signalbox.RunStatus) signalbox.ScheduleRun {
	at := noon.Add(time.Duration(n) * time.Hour)
	return signalbox.ScheduleRun{ID: signalbox.RunID(at), Nominal: at, FiredAt: at, Trigger: signalbox.TriggerCron, Status: status}
}

func TestAcknowledgedWritesSurviveRestart(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "scheduler")
	b, err := standalone.OpenStore(folder, quiet)
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, row("b"))
	a := put(t, b, row("a"), run(1, signalbox.RunFiring))
	decided := run(1, signalbox.RunQueued)
	decided.QueueID = "queue-1"
	a.LastStatus = signalbox.RunQueued
	put(t, b, a, decided, run(2, signalbox.RunHeld))
	gone := put(t, b, row("gone"))
	if was, err := b.Delete(t.Context(), gone.ID, signalbox.Entry{}); !was || err != nil {
		t.Fatal(was, err)
	}
	if was, err := b.Delete(t.Context(), gone.ID, signalbox.Entry{}); was || err != nil {
		t.Fatal(was, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "scheduler.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = openStore(t, folder)
	rows, err := b.Schedules(t.Context())
	if err != nil || len(rows) != 2 || rows[0].Name != "a" || rows[0].Rev != 2 || rows[0].LastStatus != signalbox.RunQueued || !rows[0].Cursor.Equal(noon) ||
		!*rows[0].Thinking || rows[0].Project.Path != "/srv" || rows[0].MissedWindow != time.Hour {
		t.Fatalf("%+v %v", rows, err)
	}
	runs, _ := b.Runs(t.Context(), "sched-a", 10)
	open, _ := b.Open(t.Context())
	if len(runs) != 2 || runs[0].Status != signalbox.RunHeld || runs[1].QueueID != "queue-1" || runs[1].ScheduleID != "sched-a" || len(open) != 1 || open[0].ID != runs[0].ID {
		t.Errorf("%+v %+v", runs, open)
	}
	if _, err := b.Schedule(t.Context(), "sched-gone"); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Error(err)
	}
}

// TestPutComparesRevision: a stale revision is refused, and an instant is decided once.
func TestPutComparesRevision(t *testing.T) {
	b := openStore(t, t.TempDir())
	a := put(t, b, row("a"), run(1, signalbox.RunFiring))
	for _, stale := range []signalbox.Schedule{row("a"), func() signalbox.Schedule { s := row("new"); s.Rev = 1; return s }()} {
		if _, err := b.Put(t.Context(), stale, nil, signalbox.Entry{}); !errors.Is(err, schedule.ErrStale) {
			t.Errorf("%s: %v", stale.Name, err)
		}
	}
	other := row("other")
	other.Name = "a"
	var e *signalbox.Error
	if _, err := b.Put(t.Context(), other, nil, signalbox.Entry{}); !errors.As(err, &e) || e.Code != signalbox.CodeConflict || e.Field != "name" {
		t.Errorf("%v", err)
	}
	a = put(t, b, a, run(1, signalbox.SkippedError))
	if _, err := b.Put(t.Context(), a, []signalbox.ScheduleRun{run(1, signalbox.RunFiring)}, signalbox.Entry{}); signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Errorf("%v", err)
	}
	for i := 2; i < 60; i++ {
		status := signalbox.RunQueued
		if i == 3 {
			status = signalbox.RunHeld
		}
		a = put(t, b, a, run(i, status))
	}
	runs, _ := b.Runs(t.Context(), a.ID, 100)
	if len(runs) != 21 || runs[0].ID != run(59, "").ID || runs[20].Status != signalbox.RunHeld {
		t.Errorf("%d runs, %+v", len(runs), runs[len(runs)-1])
	}
}

// TestConcurrentWritesAreBatched: none of them is lost.
func TestConcurrentWritesAreBatched(t *testing.T) {
	folder := t.TempDir()
	b := openStore(t, folder)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			s := row(fmt.Sprintf("job-%d", i))
			for n := range 10 {
				var err error
				if s, err = b.Put(context.Background(), s, []signalbox.ScheduleRun{run(n, signalbox.RunQueued)}, signalbox.Entry{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	rows, _ := openStore(t, folder).Schedules(t.Context())
	for _, s := range rows {
		if s.Rev != 10 {
			t.Errorf("%s: revision %d", s.Name, s.Rev)
		}
	}
	if len(rows) != 8 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestFailedWriteChangesNothing(t *testing.T) {
	b := openStore(t, t.TempDir())
	a := put(t, b, row("a"))
	b.FailWrites(errors.New("no space left on device"))
	if _, err := b.Put(t.Context(), a, []signalbox.ScheduleRun{run(1, signalbox.RunFiring)}, signalbox.Entry{}); signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Errorf("%v", err)
	}
	if was, err := b.Delete(t.Context(), a.ID, signalbox.Entry{}); was || err == nil {
		t.Errorf("%v %v", was, err)
	}
	now, _ := b.Schedule(t.Context(), a.ID)
	open, _ := b.Open(t.Context())
	if now.Rev != 1 || len(open) != 0 {
		t.Errorf("%+v %+v", now, open)
	}
	b.FailWrites(nil)
	put(t, b, a, run(1, signalbox.RunFiring))
}

func TestStoreIsLockedByOneProcess(t *testing.T) {
	folder := t.TempDir()
	b := openStore(t, folder)
	if _, err := standalone.OpenStore(folder, quiet); err == nil || !strings.Contains(err.Error(), "another scheduler uses the folder "+folder) {
		t.Errorf("%v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, folder)
}

// TestCorruptFileIsSetAside: the store starts empty.
func TestCorruptFileIsSetAside(t *testing.T) {
	for name, text := range map[string]string{
		"cut off": `{"version":1,"schedules":[{"schedule":{"ID":"a"`, "empty": "", "no version": `{}`,
		"no id": `{"version":1,"schedules":[{"schedule":{"Name":"a","Rev":1},"runs":[]}]}`,
		"twice": `{"version":1,"schedules":[{"schedule":{"ID":"a","Rev":1}},{"schedule":{"ID":"a","Rev":1}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "scheduler.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			b, err := standalone.OpenStore(folder, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			rows, _ := b.Schedules(t.Context())
			aside, _ := filepath.Glob(path + ".corrupt-*")
			if len(rows) != 0 || len(aside) != 1 || !strings.Contains(log.String(), "set_aside="+aside[0]) {
				t.Fatalf("%v %v %s", rows, aside, log.String())
			}
			if data, _ := os.ReadFile(aside[0]); string(data) != text {
				t.Errorf("%s", data)
			}
			put(t, b, row("a"))
		})
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "scheduler.json"), []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := standalone.OpenStore(folder, quiet); err == nil || !strings.Contains(err.Error(), "of version 2") {
		t.Errorf("a newer file: %v", err)
	}
	if aside, _ := filepath.Glob(filepath.Join(folder, "*.corrupt-*")); len(aside) > 0 {
		t.Error("a newer file was set aside")
	}
}
