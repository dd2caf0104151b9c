package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Three directors over one server, many schedules, and a kill at the firing
// time: each time of each schedule gives one firing and one task.
func TestThreeDirectorsFireEachInstantOnce(t *testing.T) {
	b := newBox(t)
	b.vars["SIGNALBOX_STORE"] = testserver.NewPostgres(t, testserver.PostgresOptions{}).Database(t)
	b.vars["SIGNALBOX_SECRET_KEY"] = testKey
	b.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "1000"
	var addrs []string
	var directors []*process
	for _, name := range []string{"one", "two", "three"} {
		addr := freePort(t)
		addrs = append(addrs, addr)
		p := b.start("director", "--addr", addr, "--instance", name, "--data", filepath.Join(b.root, name))
		p.prints("http://")
		directors = append(directors, p)
	}
	c := b.client("http://" + addrs[0])
	// The finest cron interval is a minute. A task of an earlier firing is never
	// ended and would block the firing under test, so the schedules are created
	// within a single minute.
	sleepUntil(minuteAfter(time.Now().Add(20 * time.Second)).Add(-time.Minute))
	instant := minuteAfter(time.Now())
	const schedules = 40
	for i := range schedules {
		s := api.NewSchedule{Name: fmt.Sprintf("each-minute-%d", i), CronExpression: "* * * * *", Prompt: "say hello"}
		if _, err := c.CreateSchedule(b.ctx(), s); err != nil {
			t.Fatal(err)
		}
	}
	if !time.Now().Before(instant) {
		t.Fatalf("the schedules took longer than until %s to be made", instant)
	}
	sleepUntil(instant)
	time.Sleep(30 * time.Millisecond)
	directors[2].kill() // in the middle of the firings
	for i := range schedules {
		name := fmt.Sprintf("each-minute-%d", i)
		firings := 0
		b.until(name+" has fired", func() bool {
			list, err := c.Executions(b.ctx(), name, 10)
			if err != nil {
				t.Fatal(err)
			}
			firings = 0
			made := false
			for _, f := range list.Executions {
				if f.Nominal.Equal(instant) {
					firings, made = firings+1, f.QueueID != ""
				}
			}
			return made // the killed director's work is taken over within half a minute
		})
		tasks, err := c.Search(b.ctx(), "job:"+name, client.SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if firings != 1 || len(tasks.Tasks) != 1 { // the task never ends, so that the next firing is blocked by it
			t.Errorf("%s: %d firings of the instant, %d tasks", name, firings, len(tasks.Tasks))
		}
	}
}

// minuteAfter is the first full minute after a time.
func minuteAfter(t time.Time) time.Time { return t.Truncate(time.Minute).Add(time.Minute) }

func sleepUntil(t time.Time) {
	for time.Until(t) > 0 {
		time.Sleep(min(time.Until(t), 100*time.Millisecond))
	}
}
