package redis_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// TestIncidentLostLastSecond restarts a server without its last acknowledged data, as after a power cut with
// appendfsync everysec: the process that knows more begins a new generation with unused numbers.
func TestIncidentLostLastSecond(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{"appendfsync everysec"}})
	st := newStore(t, s.URL())
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	submitTo(t, st, 1)
	file := filepath.Join(s.Data, "appendonlydir")
	kept := filepath.Join(t.TempDir(), "kept")
	settled(t, s)
	if err := os.CopyFS(kept, os.DirFS(file)); err != nil {
		t.Fatal(err)
	}
	before := claimFrom(t, st) // the last second
	lost := submitTo(t, st, 2)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(file), os.CopyFS(file, os.DirFS(kept))); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}

	lostSince(t, st, before, lost)
}

// submitTo submits the task with that number.
func submitTo(t *testing.T, st *verbs.Shared, n int) signalbox.Task {
	t.Helper()
	task := submitted(n)
	task.Seq, task.Rev, task.Place, task.Ready = 0, 0, 0, false
	got, err := st.Submit(context.Background(), store.Submission{Task: *task, Request: signalbox.Request{Prompt: "x"}, Now: start})
	if err != nil {
		t.Fatal(err)
	}
	return got.Task
}

// claimFrom claims the first waiting task.
func claimFrom(t *testing.T, st *verbs.Shared) signalbox.Task {
	t.Helper()
	got, err := st.Claim(context.Background(), store.ClaimRequest{
		Agent: "a", AgentURL: "http://a", Slots: 9, Queues: []string{signalbox.QueueWork}, Expires: start.Add(time.Hour), Now: start,
	})
	if err != nil || !got.Found {
		t.Fatalf("found %v, %v", got.Found, err)
	}
	return got.Task
}

// renewed reports whether the fence of a claim is still valid.
func renewed(t *testing.T, st *verbs.Shared, claimed signalbox.Task) bool {
	t.Helper()
	n, err := st.Renew(context.Background(), []store.Lease{{Agent: "a", Slot: claimed.Slot, Fence: claimed.Fence, Expires: start.Add(2 * time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// lostSince checks a store whose server has lost a claim, and a task that was submitted after it: nothing
// lost is accepted for something new.
func lostSince(t *testing.T, st *verbs.Shared, before, lost signalbox.Task) {
	t.Helper()
	ctx := context.Background()
	after := claimFrom(t, st)
	if g := st.Generation(); g != 2 {
		t.Errorf("generation %d", g)
	}
	if after.ID != before.ID || after.Fence <= before.Fence {
		t.Errorf("the task was given out again with fence %d, after %d", after.Fence, before.Fence)
	}
	if renewed(t, st, before) {
		t.Error("the old fence was renewed")
	}
	change, err := signalbox.Next(before, signalbox.Event{Kind: signalbox.EventAccept, Now: start, Fence: before.Fence, Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Apply(ctx, change, start); !errors.Is(err, store.ErrStale) {
		t.Errorf("a change from before was taken: %v", err)
	}
	if _, err := st.Task(ctx, lost.ID); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Errorf("what was lost is there: %v", err)
	}
	if again := submitTo(t, st, 3); again.Seq <= lost.Seq || again.Place <= lost.Place {
		t.Errorf("numbers were given twice: %+v after %+v", again, lost)
	}
}

// settled waits until the server has written its data to disk.
func settled(t *testing.T, s *testserver.RedisServer) {
	t.Helper()
	command(t, s, "CONFIG", "SET", "appendfsync", "always")
	command(t, s, "SET", "synced", "1")
	command(t, s, "CONFIG", "SET", "appendfsync", "everysec")
}

// TestIncidentServerLostEverything is the same if no data is left.
func TestIncidentServerLostEverything(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	st := newStore(t, s.URL())
	defer st.Close()
	id := st.Info().ID
	first := store.Submission{Task: *submitted(1), Request: signalbox.Request{Prompt: "x"}, Now: start}
	if _, err := st.Submit(ctx, first); err != nil {
		t.Fatal(err)
	}
	command(t, s, "FLUSHALL")
	first.Task.ID = submitted(2).ID
	got, err := st.Submit(ctx, first)
	if err != nil || got.Task.Seq < 2 || st.Generation() != 2 {
		t.Fatalf("seq %d in generation %d: %v", got.Task.Seq, st.Generation(), err)
	}
	if again := newStore(t, s.URL()); again.Info().ID != id {
		t.Error("the store has another identity: fences of before would be compared with new ones")
	} else {
		again.Close()
	}
}
