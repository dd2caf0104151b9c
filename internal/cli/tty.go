package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// TTY is a person's terminal.
type TTY interface {
	// Raw hands every key on as it is, until restore is called.
	Raw() (restore func() error, err error)
	Size() (columns, rows int)
	// Resized says when the size has changed, until ctx ends.
	Resized(ctx context.Context) <-chan os.Signal
	// Password reads a line without showing it, until ctx ends.
	Password(ctx context.Context, prompt string) (string, error)
}

// systemTTY is the terminal of the process.
type systemTTY struct{}

func (systemTTY) Raw() (func() error, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	return func() error { return term.Restore(fd, before) }, err
}

func (systemTTY) Size() (columns, rows int) {
	columns, rows, _ = term.GetSize(int(os.Stdout.Fd())) // 0, 0 is for the other side to judge
	return columns, rows
}

func (systemTTY) Resized(ctx context.Context) <-chan os.Signal {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	context.AfterFunc(ctx, func() { signal.Stop(resized) })
	return resized
}

func (systemTTY) Password(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, prompt)
	defer fmt.Fprintln(os.Stderr)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case got := <-read:
		return string(got.text), got.err
	case <-ctx.Done(): // Ctrl-C ends no read: it must not leave a terminal that shows nothing
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}
