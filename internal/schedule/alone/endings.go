package alone

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// endings remembers which tasks have been seen to end: a task that has ended
// stays so, and need not be asked for again.
type endings struct {
	queue *Queue
	fresh time.Duration // younger answers are not asked for again

	mu    sync.Mutex
	ended map[string]bool
	asked map[string]time.Time
}

// Bounds of what one look at the status asks the director.
const (
	sideBySide = 8
	askFresh   = time.Second
	askTime    = 2 * time.Second
)

// ask asks for the newest tasks of schedules that have not been seen to end. Of
// others it forgets what it knew.
func (e *endings) ask(ctx context.Context, rows []signalbox.Schedule) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	slots := make(chan struct{}, sideBySide)
	var group sync.WaitGroup
	for _, id := range e.open(rows) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			group.Wait()
			return
		}
		group.Go(func() {
			defer func() { <-slots }()
			if ended, err := e.queue.Ended(ctx, id); err == nil && ended {
				e.mu.Lock()
				e.ended[id] = true
				e.mu.Unlock()
			}
		})
	}
	group.Wait()
}

// open lists the newest tasks that are to be asked for now.
func (e *endings) open(rows []signalbox.Schedule) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ended, asked, now := map[string]bool{}, map[string]time.Time{}, time.Now()
	var ids []string
	for i := range rows {
		id := rows[i].LastQueueID
		switch {
		case id == "":
		case e.ended[id]:
			ended[id] = true
		case now.Sub(e.asked[id]) < e.fresh:
			asked[id] = e.asked[id]
		default:
			asked[id] = now
			ids = append(ids, id)
		}
	}
	e.ended, e.asked = ended, asked
	return ids
}

func (e *endings) known(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended[id]
}
