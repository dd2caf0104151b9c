//go:build linux

package confine_test

import (
	"os"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

// A director that starts removes what dead ones of other names left. Of one
// that is just starting again it takes nothing, in no hierarchy.
func TestANeighbourStartsAgain(t *testing.T) {
	mine := confine.Options{Name: name(t) + "-mine"}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			h, err := confine.Open(confine.Options{Name: name(t) + "-neighbour"})
			if err != nil {
				t.Error(err)
				return
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 40 {
		h, err := confine.Open(mine)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("run", func(t *testing.T) { // its cleanup frees the box
			r := start(t, h, confine.Limits{Processes: 16}, confine.Sandbox{}, `trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
			r.out.said(t, "ready")
			if exit, err := r.EndWithin(20 * time.Second); err != nil || exit.Code != 3 {
				t.Errorf("%v, %v", exit, err)
			}
		})
		left := groups(mine.Name)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for _, dir := range left { // as one that was killed leaves them
			_ = os.Mkdir(dir, 0o750)
		}
	}
	close(stop)
	<-stopped
}
