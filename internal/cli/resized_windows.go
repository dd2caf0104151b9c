package cli

import (
	"context"
	"os"
	"syscall"
	"time"
)

// notifyResized polls the terminal's size: Windows has no signal for it.
func notifyResized(ctx context.Context, resized chan<- os.Signal) {
	const every = time.Second
	go func() {
		var was [2]int
		was[0], was[1] = systemTTY{}.Size()
		for tick := time.Tick(every); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			var now [2]int
			now[0], now[1] = systemTTY{}.Size()
			if now == was {
				continue
			}
			was = now
			select {
			case resized <- syscall.Signal(0):
			default:
			}
		}
	}()
}
