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
	inTown(t, 20, func(tn *town) {
		a := tn.director("a").start()
		tn.pass(3 * time.Second)
		again := tn.director("a", func(d *store.Director) { d.Run, d.URL = "other", "http://elsewhere" })
		err := again.peers.Start(tn.Context())
		if signalbox.CodeOf(err) != signalbox.CodeConflict || !strings.Contains(err.Error(), "http://a") || !strings.Contains(err.Error(), "--instance") {
			tn.Errorf("it started: %v", err)
		}
		again.peers.Leave(tn.Context())
		tn.pass(12 * time.Second)
		tn.whole(a)
		if a.superseded != nil || len(a.lapses) > 0 {
			tn.Errorf("superseded: %v, lapses %v", a.superseded, a.lapses)
		}
	})
}

// A process that died, or is paused, is replaced by another of its name; if it comes back it must end.
func TestNameOfPausedProcessIsTakenOver(t *testing.T) {
	inTown(t, 20, func(tn *town) {
		a := tn.director("a").start()
		tn.pass(3 * time.Second)
		a.view.Away(true)
		again := tn.director("a", func(d *store.Director) { d.Run, d.URL = "other", "http://elsewhere" })
		again.id = "a again"
		again.start()
		a.view.Away(false)
		for range 120 {
			tn.pass(100 * time.Millisecond)
			tn.share(a, again)
		}
		tn.whole(a, again)
		if signalbox.CodeOf(a.superseded) != signalbox.CodeConflict || again.superseded != nil {
			tn.Errorf("superseded: %v, %v", a.superseded, again.superseded)
		}
	})
}

// A restart at the same address gets its agents back at once: the previous process cannot be alive.
func TestRestartRetakesItsAgentsAtOnce(t *testing.T) {
	inTown(t, 20, func(tn *town) {
		a := tn.director("a").start()
		tn.pass(3 * time.Second)
		a.kill()
		again := tn.director("a", func(d *store.Director) { d.Run = "other" }).start()
		tn.whole(again)
	})
}

func TestIncompatibleDirectorsAreRefused(t *testing.T) {
	inTown(t, 5, func(tn *town) {
		a := tn.director("a").start()
		for name, change := range map[string]func(*store.Director){
			"key":   func(d *store.Director) { d.Key = "another" },
			"minor": func(d *store.Director) { d.Version = "v1.3.0" },
		} {
			b := tn.director("b", change)
			err := b.peers.Start(tn.Context())
			if signalbox.CodeOf(err) != signalbox.CodeConflict {
				tn.Errorf("%s: started with %v", name, err)
			}
			b.peers.Leave(tn.Context())
		}
		tn.director("c", func(d *store.Director) { d.Version = "v1.2.9" }).start()
		tn.pass(3 * time.Second)
		if a.superseded != nil {
			tn.Errorf("superseded: %v", a.superseded)
		}
	})
}
