package agentd_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox/api"
)

// collect reads a run's output from the beginning to its end.
func (a *agent) collect(id string) (text string, truncated bool) {
	a.t.Helper()
	var b strings.Builder
	for after := int64(0); ; {
		var out api.AgentOutput
		if code := a.do("GET", "/task/"+id+"/output?wait=10s&after="+itoa(after), nil, &out); code != 200 {
			a.t.Fatal(code)
		}
		if out.Seq < after || (out.Seq > after) != out.Truncated || out.Next < out.Seq {
			a.t.Fatalf("asked for %d, got %d to %d, truncated %v", after, out.Seq, out.Next, out.Truncated)
		}
		truncated = truncated || out.Truncated
		b.WriteString(out.Text)
		after = out.Next
		if out.Done {
			return b.String(), truncated
		}
	}
}

func TestOutputIsComplete(t *testing.T) {
	a := start(t, command(t, "flood", "1048576"))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	if text, cut := a.collect(acc.TaskID); len(text) != 1<<20 || cut || strings.Trim(text, "x\n") != "" {
		t.Errorf("%d bytes, cut %v", len(text), cut)
	}
	s := a.end(acc.TaskID)
	if s.OutputSeq != 1<<20 || len(s.Output) != 1<<20 {
		t.Errorf("seq %d, answer of %d bytes", s.OutputSeq, len(s.Output))
	}
	a.stop()
	b := start(t, a.cfg)
	if text, cut := b.collect(acc.TaskID); len(text) != 1<<20 || cut {
		t.Errorf("after a restart: %d bytes, cut %v", len(text), cut)
	}
}

// Output beyond the cap is not stored, except for the end, and the file says
// what is missing.
func TestOutputCap(t *testing.T) {
	cfg := command(t, "flood", "1048576")
	cfg.LogCap = 200_000
	a := start(t, cfg)
	acc := a.submit(api.AgentTask{Prompt: "x"})
	s := a.end(acc.TaskID)
	if s.State != "completed" || s.OutputSeq != 1<<20 {
		t.Errorf("%s, seq %d", s.State, s.OutputSeq)
	}
	for range 2 {
		text, cut := a.collect(acc.TaskID)
		if !cut || len(text) != 200_000+128<<10 {
			t.Errorf("%d bytes, cut %v", len(text), cut)
		}
		a.stop()
		a = start(t, a.cfg) // and after a restart
	}
	b, err := os.ReadFile(filepath.Join(cfg.DataDir, "runs", acc.TaskID, "output.log"))
	if err != nil || !strings.Contains(string(b), "reached its cap of 200000 bytes; 717504 bytes left out") {
		t.Errorf("the file does not say that it was cut: %d bytes, %v", len(b), err)
	}
}

func TestOutputIsText(t *testing.T) {
	a := start(t, command(t, "binary"))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	text, _ := a.collect(acc.TaskID)
	if !utf8.ValidString(text) || !strings.Contains(text, "é end") || !strings.Contains(text, "ok \uFFFD") {
		t.Errorf("%q", text)
	}
}

func TestWaitAnswersAtOnce(t *testing.T) {
	a := start(t, command(t, "polite"))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	a.says(acc.TaskID, "hanging")
	began := time.Now()
	var s api.AgentTaskStatus
	a.do("GET", "/task/"+acc.TaskID+"?wait=60s&after=0", nil, &s)
	if s.State != "working" || s.OutputSeq == 0 || s.LastProgressAt == nil || !strings.Contains(s.Output, "hanging") {
		t.Errorf("%+v", s)
	}
	a.do("GET", "/task/"+acc.TaskID+"?wait=10ms", nil, &s)
	if s.State != "working" {
		t.Errorf("%+v", s)
	}
	ended := make(chan api.AgentTaskStatus, 1)
	go func() {
		var s api.AgentTaskStatus
		a.do("GET", "/task/"+acc.TaskID+"?wait=60s", nil, &s)
		ended <- s
	}()
	a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, nil)
	if s := <-ended; s.State != "cancelled" {
		t.Errorf("%+v", s)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("the waits took %v", d)
	}
	for _, q := range []string{"wait=x", "wait=-1s", "after=-1", "after=x"} {
		var ref api.AgentRefusal
		if code := a.do("GET", "/task/"+acc.TaskID+"/output?"+q, nil, &ref); code != 400 || ref.Error != "validation_error" {
			t.Errorf("%s: %d %+v", q, code, ref)
		}
	}
}

func TestHistory(t *testing.T) {
	a := start(t, config(t, "demo"))
	var h api.AgentHistory
	if code := a.do("GET", "/history", nil, &h); code != 200 || h.Entries == nil || h.Total != 0 || h.Page != 1 {
		t.Errorf("empty: %d %+v", code, h)
	}
	var ids []string
	for range 3 {
		acc := a.submit(api.AgentTask{Prompt: "sleep 1ms"})
		a.end(acc.TaskID)
		ids = append(ids, acc.TaskID)
	}
	a.do("GET", "/history?limit=2", nil, &h)
	if h.Total != 3 || h.TotalPages != 2 || len(h.Entries) != 2 || h.Entries[0].TaskID != ids[2] || h.Entries[0].Output == "" {
		t.Errorf("%+v", h)
	}
	a.do("GET", "/history?limit=2&page=2", nil, &h)
	if len(h.Entries) != 1 || h.Entries[0].TaskID != ids[0] {
		t.Errorf("second page: %+v", h)
	}
	var s api.AgentTaskStatus
	if code := a.do("GET", "/history/"+ids[1], nil, &s); code != 200 || s.TaskID != ids[1] {
		t.Errorf("%d %+v", code, s)
	}
	running := a.submit(api.AgentTask{Prompt: "sleep 1m"})
	for path, want := range map[string]int{
		"/history/task-unknown": 404, "/history/" + running.TaskID: 404, "/history?page=0": 400, "/history?limit=101": 400, "/history?limit=x": 400,
	} {
		if code := a.do("GET", path, nil, nil); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

// A caller that reads the output to its end also gets the final state.
func TestOutputEndsWithFinalState(t *testing.T) {
	a := start(t, command(t, "flood", "200000"))
	acc := a.submit(api.AgentTask{Prompt: "x"})
	for round, after := 0, int64(0); ; round++ {
		var out api.AgentOutput
		a.do("GET", "/task/"+acc.TaskID+"/output?wait=30s&after="+itoa(after), nil, &out)
		if out.Done != (out.Final != nil) {
			t.Fatalf("done %v with final %+v", out.Done, out.Final)
		}
		if after = out.Next; !out.Done {
			continue
		}
		if d := cmp.Diff(a.get(acc.TaskID), *out.Final); d != "" || out.Final.State != "completed" || len(out.Final.Output) < 190_000 {
			t.Errorf("final is %s: %s", out.Final.State, d)
		}
		if round > 0 && after != out.Final.OutputSeq {
			t.Errorf("done at %d of %d", after, out.Final.OutputSeq)
		}
		return
	}
}

// An answer is stored in the record or, if it is long, beside it.
func TestAnswersOfAllSizesSurviveRestart(t *testing.T) {
	for _, size := range []string{"64", "65536", "65600", "1048576", "1100032"} {
		a := start(t, command(t, "flood", size))
		acc := a.submit(api.AgentTask{Prompt: "x"})
		before := a.end(acc.TaskID)
		a.stop()
		b := start(t, a.cfg)
		want, _ := strconv.Atoi(size)
		if after := b.get(acc.TaskID); after.Output != before.Output || len(after.Output) < min(want, 1<<20)-1 {
			t.Errorf("%s bytes: %d before and %d after a restart", size, len(before.Output), len(after.Output))
		}
		b.stop()
	}
}
