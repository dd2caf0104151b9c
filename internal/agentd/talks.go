package agentd

import (
	"context"
	"fmt"
	"sync"
)

// talks are the conversations that runs within this process go on with: one
// run each at a time. Programs are kept apart by locks on their folders.
type talks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by session; closed when it is given up
}

// take waits until no other run has the conversation. waiting is called once
// where there is one.
func (t *talks) take(ctx context.Context, session string, waiting func()) error {
	for said := false; ; said = true {
		t.mu.Lock()
		if t.held == nil {
			t.held = map[string]chan struct{}{}
		}
		free, busy := t.held[session]
		if !busy {
			t.held[session] = make(chan struct{})
		}
		t.mu.Unlock()
		if !busy {
			return nil
		}
		if !said {
			waiting()
		}
		select {
		case <-free:
		case <-ctx.Done():
			return fmt.Errorf("another run goes on with the conversation %s: %w", session, context.Cause(ctx))
		}
	}
}

func (t *talks) give(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.held[session])
	delete(t.held, session)
}
