//go:build !linux

package command

import "os"

// shortInput is a pipe that contains a line, which must fit, and then ends.
func shortInput(line []byte) (*os.File, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	if _, err := ours.Write(line); err != nil {
		theirs.Close()
		return nil, err
	}
	return theirs, nil
}
