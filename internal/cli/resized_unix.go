//go:build unix

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// notifyResized tells of each change of the terminal's size.
func notifyResized(ctx context.Context, resized chan<- os.Signal) {
	signal.Notify(resized, syscall.SIGWINCH)
	context.AfterFunc(ctx, func() { signal.Stop(resized) })
}
