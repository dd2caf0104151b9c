//go:build unix

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// notifyResized sends a value for each change of the terminal's size.
func notifyResized(ctx context.Context, resized chan<- os.Signal) {
	signal.Notify(resized, syscall.SIGWINCH)
	context.AfterFunc(ctx, func() { signal.Stop(resized) })
}
