//go:build unix

package proc

import (
	"errors"
	"os"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Size is the size of a terminal, in characters.
type Size struct{ Cols, Rows int }

func (s Size) winsize() *unix.Winsize {
	return &unix.Winsize{Col: uint16(s.Cols), Row: uint16(s.Rows)}
}

// errNoTTY is returned for a program without a terminal.
var errNoTTY = errors.New("the program has no terminal")

// wireTTY gives the program a controlling terminal. It returns the file that
// only the program needs.
func (p *Process) wireTTY() (theirs []*os.File, err error) {
	master, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	theirs = []*os.File{tty}
	if p.tty, err = wakeable(master); err != nil {
		master.Close()
		return theirs, err
	}
	p.pipes = []pipe{{p.tty, p.spec.Stdout}}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr.Setctty = true // on file 0
	return theirs, p.Resize(*p.spec.TTY)
}

// Resize sets the size of the program's terminal.
func (p *Process) Resize(s Size) error {
	if p.tty == nil {
		return errNoTTY
	}
	raw, err := p.tty.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	err = raw.Control(func(fd uintptr) { done = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, s.winsize()) })
	return errors.Join(err, done)
}

// Type sends keystrokes to the program's terminal, and gives up after wait if
// the program does not read them.
func (p *Process) Type(b []byte, wait time.Duration) error {
	if p.tty == nil {
		return errNoTTY
	}
	_ = p.tty.SetWriteDeadline(time.Now().Add(wait)) // if deadlines are not supported, the end of the program ends the wait
	_, err := p.tty.Write(b)
	return err
}
