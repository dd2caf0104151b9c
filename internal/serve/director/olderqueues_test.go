package director

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// noted returns what the log of a start says about older queues.
func noted(t *testing.T, c config.Config, s store.Reader) string {
	t.Helper()
	var log bytes.Buffer
	noteOlderQueues(t.Context(), c, s, slog.New(slog.NewTextHandler(&log, nil)))
	return log.String()
}

// If another queue left tasks in the data folder, the log points to signalbox import.
func TestOlderQueuesAreNoted(t *testing.T) {
	s := memory.New(memory.Options{})
	c := config.Config{Data: t.TempDir()}
	if got := noted(t, c, s); got != "" {
		t.Errorf("an empty folder: %s", got)
	}
	for _, name := range []string{"pending/a.json", "dispatched/b.json", "pending/c.txt"} {
		path := filepath.Join(c.Data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := noted(t, c, s); !strings.Contains(got, "tasks=2") || !strings.Contains(got, "signalbox import "+c.Data) {
		t.Error(got)
	}
}

// If an execution queue left executions in Redis that were not imported, the log points to
// signalbox import; otherwise it says nothing.
func TestExecutionsLeftInRedisAreNoted(t *testing.T) {
	server := testserver.NewRedis(t, testserver.RedisOptions{})
	opt, err := rueidis.ParseURL("redis://" + server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	opt.DisableCache = true
	client, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	do := func(args ...string) {
		t.Helper()
		if err := client.Do(t.Context(), client.B().Arbitrary(args...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	s := memory.New(memory.Options{})
	fromEnv := storeFromRedisURL(t, "redis://"+server.Addr())
	named := config.Config{Data: t.TempDir(), Store: "redis://user:secret@" + server.Addr()}
	do("ACL", "SETUSER", "user", "on", ">secret", "~*", "+@all")

	do("SET", "agent:other", "no execution")
	for i := range 2000 { // keys of a store: a scan may return the executions after many others
		do("SET", fmt.Sprintf("{signalbox}:%d", i), "x")
	}
	if got := noted(t, fromEnv, s); got != "" {
		t.Errorf("a Redis without executions: %s", got)
	}
	do("LPUSH", "agent:queue:coder", executionJSON("waits"))
	do("SET", "agent:running:coder", executionJSON("runs"))
	got := noted(t, fromEnv, s)
	if !strings.Contains(got, "level=WARN") || !strings.Contains(got, `signalbox import \"$REDIS_URL\"`) || !strings.Contains(got, "agent:") {
		t.Errorf("executions are left: %s", got)
	}
	if got := noted(t, named, s); !strings.Contains(got, "level=WARN") || !strings.Contains(got, server.Addr()) || strings.Contains(got, "secret") {
		t.Errorf("a store that was named: %s", got)
	}
	restoreExecution(t, s, "runs")
	if got := noted(t, fromEnv, s); !strings.Contains(got, "agent:queue:coder") {
		t.Errorf("one of two was imported: %s", got)
	}
	restoreExecution(t, s, "waits")
	if got := noted(t, fromEnv, s); got != "" {
		t.Errorf("all were imported: %s", got)
	}

	do("SET", "agent:queue:wrong", "no list") // another program's key: the log says that it could not check
	if got := noted(t, fromEnv, s); strings.Contains(got, "level=WARN") || !strings.Contains(got, "signalbox import") {
		t.Errorf("a key of another type: %s", got)
	}
}

// A Redis that does not answer delays the start by at most olderQueuesTime.
func TestALookForOlderQueuesIsBounded(t *testing.T) {
	server := testserver.NewRedis(t, testserver.RedisOptions{})
	c := storeFromRedisURL(t, "redis://"+server.Addr())
	server.Freeze()
	defer server.Thaw()
	began := time.Now()
	got := noted(t, c, memory.New(memory.Options{}))
	if took := time.Since(began); took > 2*olderQueuesTime {
		t.Errorf("the look took %s", took)
	}
	if strings.Contains(got, "level=WARN") || !strings.Contains(got, "signalbox import") {
		t.Error(got)
	}
}

func executionJSON(id string) string {
	return `{"id":"` + id + `","agent_name":"coder","source":"user","message":"hello","queued_at":"2026-03-01T12:00:00","status":"queued"}`
}

// storeFromRedisURL is the configuration of a director whose store is REDIS_URL.
func storeFromRedisURL(t *testing.T, url string) config.Config {
	t.Helper()
	env := map[string]string{"REDIS_URL": url, "HOME": t.TempDir()}
	c, err := config.Load(config.Sources{NoSearch: true, Dir: t.TempDir(), Env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// restoreExecution stores a task like an import of that execution.
func restoreExecution(t *testing.T, s store.Store, id string) {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ours, err := signalbox.NewID(now, strings.NewReader(id+"0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	task := signalbox.Task{
		ID: ours, State: signalbox.Pending, Queue: signalbox.AgentQueue("coder"), Limit: signalbox.LimitWork, CreatedAt: now, EnqueuedAt: now,
		IdempotencyKey: signalbox.ImportKey(signalbox.ImportExecutionQueue, id), IdempotencyHash: "import", Source: signalbox.SourceAPI,
	}
	if _, err := s.Restore(t.Context(), store.Restored{Task: task, Request: signalbox.Request{Prompt: "p"}, Now: now}); err != nil {
		t.Fatal(err)
	}
}
