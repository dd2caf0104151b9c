package peers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// A name that a live process uses is not taken from it.
func TestNameInUseIsRefused(t *testing.T) {
	inCluster(t, 20, func(cl *cluster) {
		a := cl.director("a").start()
		cl.pass(3 * time.Second)
		again := cl.director("a", func(d *store.Director) { d.Run, d.URL = "other", "http://elsewhere" })
		err := again.peers.Start(cl.Context())
		if signalbox.CodeOf(err) != signalbox.CodeConflict || !strings.Contains(err.Error(), "http://a") || !strings.Contains(err.Error(), "--instance") {
			cl.Errorf("it started: %v", err)
		}
		again.peers.Leave(cl.Context())
		cl.pass(12 * time.Second)
		cl.allHeld(a)
		if a.superseded != nil || len(a.lapses) > 0 {
			cl.Errorf("superseded: %v, lapses %v", a.superseded, a.lapses)
		}
	})
}

// A process that died, or is paused, is replaced by another of its name; if it comes back it must end.
func TestNameOfPausedProcessIsTakenOver(t *testing.T) {
	inCluster(t, 20, func(cl *cluster) {
		a := cl.director("a").start()
		cl.pass(3 * time.Second)
		a.view.Away(true)
		again := cl.director("a", func(d *store.Director) { d.Run, d.URL = "other", "http://elsewhere" })
		again.id = "a again"
		again.start()
		a.view.Away(false)
		for range 120 {
			cl.pass(100 * time.Millisecond)
			cl.heldCounts(a, again)
		}
		cl.allHeld(a, again)
		if signalbox.CodeOf(a.superseded) != signalbox.CodeConflict || again.superseded != nil {
			cl.Errorf("superseded: %v, %v", a.superseded, again.superseded)
		}
	})
}

// A restart at the same address gets its agents back at once: the previous process cannot be alive.
func TestRestartRetakesItsAgentsAtOnce(t *testing.T) {
	inCluster(t, 20, func(cl *cluster) {
		a := cl.director("a").start()
		cl.pass(3 * time.Second)
		a.kill()
		again := cl.director("a", func(d *store.Director) { d.Run = "other" }).start()
		cl.allHeld(again)
	})
}

func TestIncompatibleDirectorsAreRefused(t *testing.T) {
	inCluster(t, 5, func(cl *cluster) {
		a := cl.director("a").start()
		for name, change := range map[string]func(*store.Director){
			"key":   func(d *store.Director) { d.Key = "another" },
			"minor": func(d *store.Director) { d.Version = "v1.3.0" },
		} {
			b := cl.director("b", change)
			err := b.peers.Start(cl.Context())
			if signalbox.CodeOf(err) != signalbox.CodeConflict {
				cl.Errorf("%s: started with %v", name, err)
			}
			b.peers.Leave(cl.Context())
		}
		cl.director("c", func(d *store.Director) { d.Version = "v1.2.9" }).start()
		cl.pass(3 * time.Second)
		if a.superseded != nil {
			cl.Errorf("superseded: %v", a.superseded)
		}
	})
}
