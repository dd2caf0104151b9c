package proc

import (
	"errors"
	"os"
	"time"
)

// Size is the size of a terminal, in characters.
type Size struct{ Cols, Rows int }

// errNoTTY is returned if a terminal is requested.
var errNoTTY = errors.New("there are no terminals for programs on Windows: run the agent on Linux or macOS, or in WSL")

func (p *Process) wireTTY() ([]*os.File, error) { return nil, errNoTTY }

// Resize fails: there is no terminal.
func (p *Process) Resize(Size) error { return errNoTTY }

// Type fails: there is no terminal.
func (p *Process) Type([]byte, time.Duration) error { return errNoTTY }
