package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/chaos"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// counters reads the store's counters, and the number of the writer's last batch.
func counters(t testing.TB, g verbs.SharedBackend, writer string) (verbs.Counters, int64) {
	t.Helper()
	l, err := g.Load(context.Background(), &verbs.Want{Writer: writer})
	if err != nil {
		t.Fatal(err)
	}
	return l.Counters, l.Number
}

func TestDuplicateBatchIsAppliedOnce(t *testing.T) {
	ctx := context.Background()
	g := open(t, testserver.Redis(t))
	d := batchOf("w", 1, verbs.Counters{}, submitted(1))
	for range 2 {
		if err := g.Commit(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if c, n := counters(t, g, "w"); c.Moment != 1 || n != 1 {
		t.Errorf("moment %d, number %d", c.Moment, n)
	}
}

func TestOlderMomentIsRefused(t *testing.T) {
	ctx := context.Background()
	url := testserver.Redis(t)
	one, two := open(t, url), open(t, url)
	if err := one.Commit(ctx, batchOf("one", 1, verbs.Counters{}, submitted(1))); err != nil {
		t.Fatal(err)
	}
	if err := two.Commit(ctx, batchOf("two", 1, verbs.Counters{}, submitted(2))); !errors.Is(err, verbs.ErrMoved) {
		t.Fatalf("got %v", err)
	}
	if found, err := two.Task(ctx, submitted(2).ID); err != nil || found != nil {
		t.Errorf("it was written: %v, %v", found, err)
	}
	<-two.Changed()
}

func TestDuplicateIDOrKeyIsRefused(t *testing.T) {
	ctx := context.Background()
	g := open(t, testserver.Redis(t))
	first := submitted(1)
	first.IdempotencyKey = "key"
	d := batchOf("w", 1, verbs.Counters{}, first)
	if err := g.Commit(ctx, d); err != nil {
		t.Fatal(err)
	}
	sameKey := submitted(2)
	sameKey.IdempotencyKey = "key"
	sameID := submitted(3)
	sameID.ID = first.ID
	for _, task := range []*signalbox.Task{sameKey, sameID} {
		if err := g.Commit(ctx, batchOf("w", 2, d.To, submitted(9), task)); !errors.Is(err, verbs.ErrTaken) {
			t.Errorf("got %v", err)
		}
	}
	if c, _ := counters(t, g, "w"); c != d.To {
		t.Errorf("something was written: %+v", c)
	}
	if err := g.Commit(ctx, batchOf("w", 2, d.To, submitted(9))); err != nil {
		t.Errorf("who came with one that is known is known now, too: %v", err)
	}
}

// TestLargeBatchIsAtomic has more new tasks in a batch than the server accepts in one command.
func TestLargeBatchIsAtomic(t *testing.T) {
	ctx := context.Background()
	g := open(t, testserver.Redis(t))
	old := submitted(1)
	first := batchOf("w", 1, verbs.Counters{}, old)
	if err := g.Commit(ctx, first); err != nil {
		t.Fatal(err)
	}
	const last = 4000
	var list []*signalbox.Task
	for n := 2; n <= last; n++ {
		task := submitted(n)
		task.IdempotencyKey = fmt.Sprint("key ", n)
		list = append(list, task)
	}
	same := submitted(last + 1)
	same.ID = old.ID
	if err := g.Commit(ctx, batchOf("w", 2, first.To, append(slices.Clone(list), same)...)); !errors.Is(err, verbs.ErrTaken) {
		t.Fatalf("got %v", err)
	}
	if err := g.Commit(ctx, batchOf("w", 2, first.To, list...)); err != nil {
		t.Fatal(err)
	}
	counts, err := g.Counts(ctx)
	if err != nil || counts.Pending != last || !counts.Oldest.Equal(start) {
		t.Errorf("%d wait, the oldest since %v (%v)", counts.Pending, counts.Oldest, err)
	}
	again := submitted(last + 1)
	again.IdempotencyKey = fmt.Sprint("key ", last)
	if c, _ := counters(t, g, "w"); !errors.Is(g.Commit(ctx, batchOf("w", 3, c, again)), verbs.ErrTaken) {
		t.Error("the last key is not known")
	}
}

// TestIncidentLostAnswerIsQueried breaks the connection when the batch has been sent: before the server has
// it, and before its answer arrives.
func TestIncidentLostAnswerIsQueried(t *testing.T) {
	for name, arrives := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := testserver.NewRedis(t, testserver.RedisOptions{})
			p := chaos.New(t, s.Addr(), chaos.Options{})
			g := open(t, "redis://"+p.Addr)
			first := batchOf("w", 1, verbs.Counters{}, submitted(1))
			if err := g.Commit(ctx, first); err != nil {
				t.Fatal(err)
			}
			second := batchOf("w", 2, first.To, submitted(2))
			sent := cutAt(p, submitted(2).ID, arrives)
			if err := g.Commit(ctx, second); !errors.Is(err, verbs.ErrUnknown) {
				t.Fatalf("got %v, want that the outcome is unknown", err)
			}
			stored, err := g.Committed(ctx, "w", 2)
			if err != nil || stored != arrives {
				t.Fatalf("stored: %v (%v), want %v", stored, err, arrives)
			}
			// The bytes are still in flight, and arrive now.
			late(t, s.Addr(), <-sent)
			now, number := counters(t, g, "w")
			if arrives {
				if now != second.To || number != 2 {
					t.Errorf("it was written twice: %+v, number %d", now, number)
				}
				return
			}
			if found, err := g.Task(ctx, submitted(2).ID); err != nil || found != nil || number != 1 {
				t.Fatalf("what was said to be lost came after all: %v, %v, number %d", found, err, number)
			}
			second.From.Moment, second.To.Moment = now.Moment, now.Moment+1
			if err := g.Commit(ctx, second); err != nil {
				t.Errorf("it cannot be done again: %v", err)
			}
		})
	}
}

// late sends bytes to the server, and waits until it has answered them.
func late(t *testing.T, addr string, b []byte) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
}

// TestIncidentServerKilledUnderLoad kills the server repeatedly: acknowledged data is kept, once.
func TestIncidentServerKilledUnderLoad(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	g := open(t, s.URL())
	const kills, each = 5, 40
	acked := make(chan int64, 1000)
	var written atomic.Int64
	done := make(chan error, 1)
	go func() { done <- write(ctx, g, &written, acked, kills*each) }()
	for n := range kills {
		testkit.Wait(t, "half of the batches are written", func() bool { return written.Load() >= int64(n*each+each/2) })
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	close(acked)
	var last int64
	for seq := range acked {
		last = seq
		if found, err := g.Task(ctx, submitted(int(seq)).ID); err != nil || found == nil {
			t.Errorf("task %d was acknowledged and is gone (%v)", seq, err)
		}
	}
	waiting, err := g.Waiting(ctx, "", zero, 10_000)
	if err != nil || int64(len(waiting)) != last {
		t.Errorf("%d tasks wait, %d were acknowledged (%v)", len(waiting), last, err)
	}
	entries, err := g.Entries(ctx, 0, 10_000)
	if err != nil || int64(len(entries)) != last {
		t.Errorf("%d entries, %d tasks (%v)", len(entries), last, err)
	}
}

// write commits one task after the other, and queries lost outcomes.
func write(ctx context.Context, g verbs.SharedBackend, written *atomic.Int64, acked chan<- int64, most int64) error {
	late := time.Now().Add(time.Minute)
	var at verbs.Counters
	for number := int64(1); written.Load() < most; {
		if time.Now().After(late) {
			return fmt.Errorf("it took too long: %d were written", written.Load())
		}
		d := batchOf("w", number, at, submitted(int(at.Seq+1)))
		err := g.Commit(ctx, d)
		stored := err == nil
		for errors.Is(err, verbs.ErrUnknown) {
			var why error
			if stored, why = g.Committed(ctx, "w", number); why == nil {
				break
			}
			if time.Now().After(late) {
				return why
			}
		}
		if stored {
			acked <- d.To.Seq
			written.Add(1)
			number, at = number+1, d.To
			continue
		}
		if l, err := g.Load(ctx, &verbs.Want{Writer: "w"}); err == nil {
			at = l.Counters
		}
	}
	return nil
}

// TestFullMemoryRefusesNewTasks, but existing tasks continue, end and are pruned, which frees memory.
func TestFullMemoryRefusesNewTasks(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	g := open(t, s.URL())
	first := batchOf("w", 1, verbs.Counters{}, submitted(1))
	if err := g.Commit(ctx, first); err != nil {
		t.Fatal(err)
	}
	command(t, s, "CONFIG", "SET", "maxmemory", "1mb")
	second := batchOf("w", 2, first.To, submitted(2))
	err := g.Commit(ctx, second)
	if signalbox.CodeOf(err) != signalbox.CodeStoreFull || errors.Is(err, verbs.ErrUnknown) || !strings.Contains(err.Error(), "raise maxmemory") {
		t.Fatalf("got %v", err)
	}
	if c, n := counters(t, g, "w"); c != first.To || n != 1 {
		t.Errorf("something was written: %+v", c)
	}
	ended := *submitted(1)
	ended.State, ended.Ready, ended.Rev, ended.Reason, ended.EndedAt = signalbox.Cancelled, false, 2, signalbox.ReasonCancelled, start
	end := batchOf("w", 2, first.To)
	end.Tasks = []verbs.TaskChange{{Before: submitted(1), After: &ended}}
	if _, err := g.Lock(ctx, &verbs.Want{Writer: "w"}); err != nil {
		t.Errorf("no turn: %v", err)
	}
	if err := g.Commit(ctx, end); err != nil {
		t.Errorf("a task cannot end: %v", err)
	}
	command(t, s, "CONFIG", "SET", "maxmemory", "0")
	second.From, second.To.Moment, second.Number = end.To, end.To.Moment+1, 3
	if err := g.Commit(ctx, second); err != nil {
		t.Errorf("with memory again: %v", err)
	}
}

func TestFullDiskIsReportedAndNothingWritten(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{"save 3600 1"}})
	g := open(t, s.URL())
	// A snapshot that cannot be written looks like a full disk.
	if err := breakSnapshots(s); err != nil {
		t.Fatal(err)
	}
	testkit.Wait(t, "the snapshot fails", func() bool {
		return strings.Contains(command(t, s, "INFO", "persistence"), "rdb_last_bgsave_status:err")
	})
	err := g.Commit(ctx, batchOf("w", 1, verbs.Counters{}, submitted(1)))
	if signalbox.CodeOf(err) != signalbox.CodeStoreFailed || errors.Is(err, verbs.ErrUnknown) || !strings.Contains(err.Error(), "cannot write its files") {
		t.Fatalf("got %v", err)
	}
	if c, _ := counters(t, g, "w"); c.Moment != 0 {
		t.Errorf("something was written: %+v", c)
	}
}

// breakSnapshots makes the next snapshot fail: a folder has the name of its file.
func breakSnapshots(s *testserver.RedisServer) error {
	if err := os.MkdirAll(filepath.Join(s.Data, "dump.rdb", "in the way"), 0o700); err != nil {
		return err
	}
	_, err := s.Command("BGSAVE")
	return err
}

// TestPrimaryBecomesReplica fails over: the server's name resolves to another one, and the old one continues
// as its replica.
func TestPrimaryBecomesReplica(t *testing.T) {
	ctx := context.Background()
	old := testserver.NewRedis(t, testserver.RedisOptions{})
	fresh := testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{fmt.Sprint("replicaof 127.0.0.1 ", old.Port)}})
	name := chaos.New(t, old.Addr(), chaos.Options{})
	g := open(t, "redis://"+name.Addr)
	first := batchOf("w", 1, verbs.Counters{}, submitted(1))
	if err := g.Commit(ctx, first); err != nil {
		t.Fatal(err)
	}
	testkit.Wait(t, "the replica has the batch", func() bool {
		moment, err := fresh.Command("HGET", "{signalbox}:head", "moment")
		return err == nil && moment == "1"
	})
	command(t, fresh, "REPLICAOF", "NO", "ONE")
	command(t, old, "REPLICAOF", "127.0.0.1", fmt.Sprint(fresh.Port))
	name.Lead(fresh.Addr())
	if err := g.Commit(ctx, batchOf("w", 2, first.To, submitted(2))); err != nil {
		t.Fatal(err)
	}
	if n := command(t, fresh, "HLEN", "{signalbox}:tasks"); n != "2" {
		t.Errorf("the new primary has %s tasks", n)
	}
}

func TestReplicaWithoutPrimaryIsReported(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	g := open(t, s.URL())
	command(t, s, "REPLICAOF", "127.0.0.1", "1")
	err := g.Commit(context.Background(), batchOf("w", 1, verbs.Counters{}, submitted(1)))
	if signalbox.CodeOf(err) != signalbox.CodeUnavailable || errors.Is(err, verbs.ErrUnknown) || !strings.Contains(err.Error(), "give the address of the primary") {
		t.Errorf("got %v", err)
	}
}

func TestUnreachableServerIsReported(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{Password: "s3cret"})
	g := open(t, s.Prefix())
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := g.Task(context.Background(), "queue-1")
	if signalbox.CodeOf(err) != signalbox.CodeUnavailable || !strings.Contains(err.Error(), s.Addr()) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

func TestReadsSurviveServerRestart(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	g := open(t, s.URL())
	if err := g.Commit(ctx, batchOf("w", 1, verbs.Counters{}, submitted(1))); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if found, err := g.Task(ctx, submitted(1).ID); err != nil || found == nil {
			t.Fatalf("got %v, %v", found, err)
		}
	}
}

func TestLargeBatchIsSentInPieces(t *testing.T) {
	ctx := context.Background()
	g := open(t, testserver.Redis(t))
	var list []*signalbox.Task
	var ids []string
	for n := range 9_000 {
		list = append(list, submitted(n+1))
		ids = append(ids, list[n].ID)
	}
	d := batchOf("w", 1, verbs.Counters{}, list...)
	d.Requests[0].Request.Prompt = string(bytes.Repeat([]byte("long "), 1<<20))
	if err := g.Commit(ctx, d); err != nil {
		t.Fatal(err)
	}
	l, err := g.Load(ctx, &verbs.Want{Writer: "w", Tasks: ids, Lines: []verbs.LineWant{{Queue: "work", N: 30_000}}, Requests: []int64{1}})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Lines[0]) != len(list) || l.Tasks[8_999] == nil || len(l.Requests[0].Prompt) != 5<<20 {
		t.Errorf("%d waiting, last %v, prompt of %d bytes", len(l.Lines[0]), l.Tasks[8_999], len(l.Requests[0].Prompt))
	}
}
