package port_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox/internal/testserver"
)

func TestSeedExecutionQueueKeys(t *testing.T) {
	address := "redis://" + testserver.NewRedis(t, testserver.RedisOptions{}).Addr()
	opt, err := rueidis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	opt.DisableCache = true
	c, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	execution := func(id, message, at string) string {
		return `{"id":"` + id + `","agent_name":"coder","source":"schedule","source_agent":null,"source_user_id":"7","source_user_email":"a@example.com","message":"` +
			message + `","queued_at":"` + at + `","started_at":null,"status":"queued"}`
	}
	ctx := context.Background()
	do := func(args ...string) {
		t.Helper()
		if err := c.Do(ctx, c.B().Arbitrary(args...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	do("SET", "agent:running:coder", execution("r", "runs", "2026-03-01T12:00:00.123456"))
	for _, m := range []string{"first", "second"} { // pushed at the head, as in the seed
		do("LPUSH", "agent:queue:coder", execution(m, m, "2026-03-01T12:00:01+00:00"))
	}
	do("LPUSH", "agent:queue:coder", "no json")
	do("SET", "agent:other", "not ours")
	tasks, bad, err := all(t, address)
	if err != nil || len(tasks) != 3 || len(bad) != 1 {
		t.Fatalf("%d tasks, bad %q, error %v", len(tasks), bad, err)
	}
	for i, want := range [][3]string{{"runs", "working", "coder"}, {"first", "pending", ""}, {"second", "pending", ""}} {
		x := &tasks[i]
		if x.Preview != want[0] || x.State != want[1] || x.Agent != want[2] || x.Queue != "agent:coder" || x.Source != "scheduler" || x.OwnerEmail != "a@example.com" {
			t.Errorf("task %d: %+v", i, x)
		}
	}
	if got := tasks[0].CreatedAt.Format("15:04:05.000"); got != "12:00:00.123" {
		t.Errorf("queued at %s", got)
	}
}
