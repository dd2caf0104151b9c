package proc

import (
	"io"
	"os"
)

// stdinFile returns the text as an open, nameless file.
func stdinFile(text string) (*os.File, error) {
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
