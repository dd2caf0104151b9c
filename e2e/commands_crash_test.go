package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

const (
	ackedTasks = 160
	ackers     = 4
	ackKills   = 4
)

// Calls are made as tasks while the director is killed with kill -9 between its
// answers. Every acknowledged task exists and ends. A call without an answer is
// repeated with its key and becomes one task. Nothing runs twice, except for a
// tool whose tasks are requeued.
func TestNoAcknowledgedToolTaskIsLost(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	b := newCommandBox(t, autoLimits, object{
		"once":  object{"command": "note"},
		"again": object{"command": "note", "restart": "requeue"},
	}, "max_concurrent: 8")
	b.start()
	times := soak.Pick(1, 10)
	tasks, kills := times*ackedTasks, times*ackKills
	acked := make(chan string, tasks)
	var mu sync.Mutex
	tools := map[string]string{} // of acknowledged tasks
	var submitters sync.WaitGroup
	for who := range ackers {
		submitters.Go(func() {
			for i := range tasks / ackers {
				tool := []string{"once", "again"}[i%2]
				task, err := b.acknowledged(tool)
				if err != nil {
					t.Errorf("submitter %d, task %d: %v", who, i, err)
					return
				}
				mu.Lock()
				tools[task.ID] = tool
				mu.Unlock()
				acked <- task.ID
			}
		})
	}
	go func() { submitters.Wait(); close(acked) }()
	for n := range acked {
		_ = n
		if kills > 0 && rng.IntN(tasks/(ackKills+1)) == 0 {
			kills--
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			b.d.signal(syscall.SIGKILL)
			b.d.exits()
			b.start()
		}
	}
	if len(tools) != tasks && !t.Failed() {
		t.Errorf("%d tasks, want %d", len(tools), tasks)
	}
	ends := map[string]int{}
	for id, tool := range tools {
		task := b.ended(id)
		if task.Status == "failed" && failure(task) != interrupted || tool == "again" && task.Status != "completed" {
			t.Errorf("%s of %s: %s: %s", id, tool, task.Status, failure(task))
		}
		ends[tool+" "+task.Status]++
	}
	for id, n := range b.runs() {
		switch tool := tools[id]; {
		case tool == "":
			t.Errorf("%s ran, and it was not reported", id)
		case tool == "once" && n > 1:
			t.Errorf("%s began %d times", id, n)
		}
	}
	t.Logf("%v", ends)
	page, err := b.c.ToolTasks(b.ctx(), client.ToolTasksOptions{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if tasks < 1000 && len(page.Tasks) != tasks {
		t.Errorf("the list has %d tasks, want %d", len(page.Tasks), tasks)
	}
}

// acknowledged submits a call as a task, with the same key until it is
// acknowledged.
func (b *commandBox) acknowledged(tool string) (task api.ToolTask, err error) {
	opts := client.ToolTaskOptions{IdempotencyKey: client.NewIdempotencyKey()}
	ctx := b.ctx()
	testkit.Within(long, func() bool {
		task, err = b.c.CreateToolTask(ctx, tool, api.NewToolTask{Arguments: json.RawMessage(`{}`)}, opts)
		return !client.IsUnreachable(err) || ctx.Err() != nil
	})
	if err == nil && task.ID == "" {
		err = fmt.Errorf("an answer without an id: %+v", task)
	}
	return task, err
}
