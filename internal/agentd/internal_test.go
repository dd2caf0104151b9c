package agentd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// endedInItsLane is a daemon with a run of queue-a under fence 1 that has ended
// but still occupies its lane.
func endedInItsLane(t *testing.T) (*Daemon, *run) {
	t.Helper()
	root := t.TempDir()
	d, err := New(Config{Kind: "demo", DataDir: root + "/data", WorkDir: root, Home: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Accept(t.Context(), api.AgentTask{Prompt: "sleep 1ms", QueueID: "queue-a", Fence: 1}); err != nil {
		t.Fatal(err)
	}
	r := d.find("queue-a")
	<-r.done
	d.mu.Lock()
	d.lanes[laneID{}] = r
	d.mu.Unlock()
	return d, r
}

// An ended run keeps its lane until its end is recorded. Until then a new offer is
// refused with agent_busy, and a void request with already_completed.
func TestEndingRunIsReportedAsEnded(t *testing.T) {
	d, _ := endedInItsLane(t)
	var ref *refusal
	if _, err := d.Accept(t.Context(), api.AgentTask{Prompt: "x"}); !errors.As(err, &ref) || ref.body.Error != "agent_busy" {
		t.Errorf("an offer got %v", err)
	}
	if _, err := d.Void("queue-a", api.AgentVoid{Fence: 1}); !errors.As(err, &ref) || ref.body.Error != "already_completed" {
		t.Errorf("a promise got %v", err)
	}
	d.mu.Lock()
	delete(d.lanes, laneID{})
	d.mu.Unlock()
}

// A run whose processes cannot be killed keeps its slot and tells callers that
// want the slot, until the processes end. A test cannot create such a process,
// so it is faked.
func TestUnkillableRunHoldsSlot(t *testing.T) {
	d, r := endedInItsLane(t)
	var dead atomic.Bool
	r.mu.Lock()
	r.rec.State, r.rec.Error = stateFailed, &api.AgentError{Type: "unkillable", Message: "processes [7] live on after SIGKILL"}
	r.mu.Unlock()
	d.holdLane(r, func() []int {
		if dead.Load() {
			return nil
		}
		return []int{7}
	})
	for _, next := range []api.AgentTask{{Prompt: "x"}, {Prompt: "x", QueueID: "queue-b", Fence: 2}} {
		_, err := d.Accept(t.Context(), next)
		var ref *refusal
		if !errors.As(err, &ref) || ref.status != http.StatusConflict || ref.body.Error != "agent_busy" || ref.body.CurrentTask == nil {
			t.Errorf("got %v", err)
		}
	}
	if s := d.Status(); s.State != "working" {
		t.Errorf("the agent is %s", s.State)
	}
	changed := d.Changed()
	dead.Store(true)
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("the slot is not free")
	}
	if _, err := d.Accept(t.Context(), api.AgentTask{Prompt: "sleep 1ms", QueueID: "queue-b", Fence: 2}); err != nil {
		t.Error(err)
	}
}

func BenchmarkAccept(b *testing.B) {
	root := b.TempDir()
	d, err := New(Config{Kind: "demo", DataDir: root + "/data", WorkDir: root, Home: root})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	fsync := time.Duration(0)
	for i := 0; b.Loop(); i++ {
		if _, err := d.Accept(b.Context(), api.AgentTask{Prompt: "sleep 0s", QueueID: "q", Fence: int64(i + 1)}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		<-d.find("q").done
		began := time.Now()
		_ = writeDurable(root+"/data/probe", make([]byte, 600))
		fsync += time.Since(began)
		b.StartTimer()
	}
	b.ReportMetric(float64(fsync.Nanoseconds())/float64(b.N), "fsync-ns/op")
}

// BenchmarkRun measures a task from its offer over HTTP to the reported end,
// in two halves.
func BenchmarkRun(b *testing.B) {
	root := b.TempDir()
	d, err := New(Config{Kind: "demo", DataDir: root + "/data", WorkDir: root, Home: root})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	srv := httptest.NewServer(d.Handler())
	defer srv.Close()
	call := func(res *http.Response, err error) {
		if err != nil || res.StatusCode/100 != 2 {
			b.Fatal(res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	var offers, ends []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		task := fmt.Sprintf(`{"prompt":"sleep 0s","queue_id":"queue-%d","fence":%d}`, i, i+1)
		call(srv.Client().Post(srv.URL+"/task", "application/json", strings.NewReader(task)))
		offered := time.Now()
		call(srv.Client().Get(srv.URL + fmt.Sprintf("/task/queue-%d?wait=10s", i)))
		offers, ends = append(offers, offered.Sub(began)), append(ends, time.Since(offered))
	}
	slices.Sort(offers)
	slices.Sort(ends)
	b.ReportMetric(float64(offers[len(offers)/2].Microseconds()), "offer-p50-µs")
	b.ReportMetric(float64(ends[len(ends)/2].Microseconds()), "end-p50-µs")
}
