package proc

import (
	"io"
	"os"
	"strconv"
	"syscall"
)

// TextFile returns the text as an open, nameless file, from its beginning.
func TextFile(text string) (*os.File, error) {
	if text == "" {
		return os.Open(os.DevNull)
	}
	f, err := namelessFile()
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// tempFile is a nameless file in the temporary folder.
func tempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "signalbox-stdin-") // 0600
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	return f, nil
}

// OwnFiles keeps the files that this process was started with, beyond its
// input and outputs, from the programs that it starts: whoever started it may
// have left open what is not for them. Call it before anything is started.
func OwnFiles() {
	const first = 3 // behind standard error
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // a system that does not tell which there are
	}
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}
