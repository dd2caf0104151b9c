package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// A task that does not fit its tool is not stored, and a tool that cannot be a task is refused with the
// reason.
func TestSubmitRefuses(t *testing.T) {
	h := newFixture(t, async("tool"), async("own", func(tool *gateway.Tool) { tool.Kind, tool.Async = gateway.KindInternal, false }))
	h.provider.check = func(c gateway.Call) error {
		if strings.Contains(string(c.Arguments), "wrong") {
			return signalbox.Invalid("arguments.wrong", "there is no property wrong")
		}
		return nil
	}
	x := h.open()
	for name, c := range map[string]struct {
		call gateway.TaskCall
		code signalbox.Code
	}{
		"no such tool": {call("none"), signalbox.CodeNotFound},
		"no object":    {call("tool", with(`[1]`)), signalbox.CodeValidation},
		"the schema":   {call("tool", with(`{"wrong":1}`)), signalbox.CodeValidation},
		"internal":     {call("own"), signalbox.CodeUnsupported},
		"metadata":     {call("tool", func(c *gateway.TaskCall) { c.Meta = json.RawMessage(`1`) }), signalbox.CodeValidation},
		"the limit":    {call("tool", func(c *gateway.TaskCall) { c.Limit = 8 * 24 * time.Hour }), signalbox.CodeValidation},
		"priority":     {call("tool", func(c *gateway.TaskCall) { c.Priority = 11 }), signalbox.CodeValidation},
	} {
		if _, err := x.Submit(t.Context(), c.call); signalbox.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	page, err := x.List(t.Context(), gateway.TaskQuery{Limit: 10})
	h.must(err)
	if len(page.Tasks) != 0 {
		t.Errorf("%+v", page)
	}
}

func TestSubmitIsIdempotent(t *testing.T) {
	h := newFixture(t, async("tool", func(tool *gateway.Tool) { tool.Secrets = []string{"key"} }))
	x := h.open()
	again := func(args string) (gateway.ToolTask, error) {
		return x.Submit(t.Context(), call("tool", with(args), func(c *gateway.TaskCall) { c.IdempotencyKey = "k" }))
	}
	first, err := again(`{"a":1,"key":"s"}`)
	h.must(err)
	h.end(x, first.Task.ID)
	second, err := again(`{"a": 1, "key": "s"}`)
	h.must(err)
	if !second.Replayed || second.Task.ID != first.Task.ID || first.Replayed {
		t.Errorf("%+v", second)
	}
	for _, other := range []string{`{"a":2,"key":"s"}`, `{"a":1,"key":"other"}`} {
		if _, err := again(other); signalbox.CodeOf(err) != signalbox.CodeIdempotency {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// The limit on waiting commands holds; other calls only have that of their tool queue.
func TestQueueFull(t *testing.T) {
	h := newFixture(t, async("tool"), plain("plain", "one"))
	h.engine = h.newEngine(engine.Options{MaxCommands: 2})
	h.must(h.engine.Pause(t.Context(), "", "", "", time.Time{}))
	x := h.open()
	h.submit(x, "tool")
	h.submit(x, "tool")
	_, err := x.Submit(t.Context(), call("tool"))
	if signalbox.CodeOf(err) != signalbox.CodeQueueFull || !strings.Contains(err.Error(), "2 tasks wait for a command slot") {
		t.Errorf("%v", err)
	}
	for range 4 {
		h.submit(x, "plain")
	}
}

// Arguments that a tool marks as secret are never stored in clear, reach the tool, and are erased when the
// task has ended.
func TestIncidentSecretsAreNotStoredInClear(t *testing.T) {
	const secret = "hunter2-of-the-test"
	path := filepath.Join(t.TempDir(), "signalbox.db")
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h := newFixtureOver(t, s, async("tool", func(tool *gateway.Tool) { tool.Secrets = []string{"key", "absent"} }))
	args := make(chan string, 2)
	h.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		args <- string(c.Arguments) + strings.Join(c.Secrets, " ")
		return said("done"), nil
	})
	h.must(h.engine.Pause(t.Context(), "", "", "", time.Time{}))
	x := h.open()
	id := h.submit(x, "tool", with(`{"key":"`+secret+`","plain":{"key":1}}`))
	r, err := h.engine.Read().Request(t.Context(), id)
	h.must(err)
	if string(r.Arguments) != `{"plain":{"key":1}}` || len(r.SealedEnv) == 0 || !r.HadEnv {
		t.Errorf("%s, %d bytes sealed", r.Arguments, len(r.SealedEnv))
	}
	h.must(h.engine.Resume(t.Context(), "", ""))
	h.end(x, id)
	if a := got(h, args); a != `{"key":"`+secret+`","plain":{"key":1}}key` {
		t.Errorf("the tool got %s", a)
	}
	if r, err = h.engine.Read().Request(t.Context(), id); err != nil || len(r.SealedEnv) > 0 {
		t.Errorf("%d bytes are kept after the end, %v", len(r.SealedEnv), err)
	}
	for _, file := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(file)
		h.must(err)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s holds the secret in clear", filepath.Base(file))
		}
	}
	if strings.Contains(h.log.String(), secret) {
		t.Error("the log holds the secret")
	}
}

// The engine alone cannot retry a call: the tool may have changed, and only the gateway knows it.
func TestRetryUsesGateway(t *testing.T) {
	h := newFixture(t, async("tool"))
	x := h.open()
	id := h.submit(x, "tool")
	h.end(x, id)
	if _, err := h.engine.Retry(t.Context(), id, engine.RetryEdit{}); signalbox.CodeOf(err) != signalbox.CodeUnsupported || !strings.Contains(err.Error(), "call the tool anew") {
		t.Errorf("%v", err)
	}
}

// A task whose tool is no longer configured ends when it is claimed, and says why.
func TestToolIsGone(t *testing.T) {
	h := newFixture(t, async("tool"), async("other"))
	h.must(h.engine.Pause(t.Context(), "", "", "", time.Time{}))
	x := h.open()
	id := h.submit(x, "tool")
	x.Stop()
	next := newFixtureOver(t, h.store, async("other"))
	y := next.open()
	h.must(next.engine.Resume(t.Context(), "", ""))
	if v := next.end(y, id); v.Task.State != signalbox.Failed || !strings.HasPrefix(v.Task.Message, "tool tool is no longer there: ") {
		t.Errorf("%s: %q", v.Task.State, v.Task.Message)
	}
}

// A tool whose server has not listed its tools yet is waited for.
func TestToolIsNotThereYet(t *testing.T) {
	h := newFixture(t, plain("s__tool", "one"))
	h.must(h.engine.Pause(t.Context(), "", "", "", time.Time{}))
	x := h.open()
	id := h.submit(x, "s__tool")
	x.Stop()
	next := newFixtureOver(t, h.store)
	next.provider.state = gateway.StateStarting
	y := next.open()
	h.must(next.engine.Resume(t.Context(), "", ""))
	next.reaches(id, signalbox.Dispatching)
	v, err := y.Task(t.Context(), id)
	h.must(err)
	if v.Wait != "about to run" || v.Poll != 500*time.Millisecond {
		t.Errorf("%q, %s", v.Wait, v.Poll)
	}
	_, err = y.Cancel(t.Context(), id, "me")
	h.must(err)
	if v := next.end(y, id); v.Task.State != signalbox.Cancelled {
		t.Errorf("%s: %s", v.Task.State, v.Task.Message)
	}
}
