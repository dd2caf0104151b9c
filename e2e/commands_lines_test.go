package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/client"
)

// Many async calls that wait for a tool queue of capacity 1 do not block
// others, even after the director was killed.
func TestAsyncCallsThatWaitForAToolQueueKeepNoOthersFromRunning(t *testing.T) {
	const builds = 25
	b := newCommandBox(t, autoLimits, object{
		"build": object{"sh": "while [ ! -e $DIR/go ]; do sleep 0.05; done; printf built", "queue": "build", "restart": "requeue"},
		"free":  object{"sh": "printf free"},
	})
	b.file("signalbox.yaml", b.read(filepath.Join(b.root, "signalbox.yaml"))+"queues: {default: {concurrent: 64}, build: {concurrent: 1}}\n", 0o600)
	b.start()
	var ids []string
	for range builds {
		ids = append(ids, b.call("build", `{}`))
	}
	for round := range 2 {
		b.until("one runs, and all others wait for it", func() bool {
			list, err := b.c.ToolTasks(b.ctx(), client.ToolTasksOptions{Status: "running"})
			_, figures := b.ask(http.MethodGet, "/metrics", "", nil)
			return err == nil && len(list.Tasks) == 1 && strings.Contains(figures, `signalbox_tool_task_slots_in_use{queue="commands"} 1`+"\n")
		})
		for range 12 {
			b.did(b.call("free", `{}`), "free")
		}
		if round == 0 {
			b.d.kill()
			b.start()
		}
	}
	if got := b.cli("doctor"); !strings.Contains(got.out, "ok") || strings.Contains(got.out, "tasks in") {
		t.Errorf("%s%s", got.out, got.err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		b.did(id, "built")
	}
}
