package agentd

import "time"

// toldFor bounds how long an agent that stops waits for its followers.
const toldFor = time.Second

// tell notes that someone asked and was told how the run ended.
func (r *run) tell() { r.toldOnce.Do(func() { close(r.told) }) }

// awaitTold waits until the directors of runs that were stopped have heard of
// it. A director may be between two questions; the next one would meet a
// closed door, and the task would wait for the slot lease of an agent that may
// never come back.
func awaitTold(stopped []*run) {
	over := time.NewTimer(toldFor)
	defer over.Stop()
	for _, r := range stopped {
		if r.record().Director == "" {
			continue // nobody follows it
		}
		select {
		case <-r.told:
		case <-over.C:
			return
		}
	}
}
