package conffile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxFile  = 1 << 20 // bytes of a file
	maxDepth = 100     // levels of a file
)

// Format is the format of a file.
type Format string

// The formats.
const (
	YAML Format = "YAML"
	JSON Format = "JSON"
)

// Error is the reason why a file could not be read.
type Error struct {
	Line int // 0: the whole file
	Text string
}

func (e *Error) Error() string { return e.Text }

// Read reads a file exactly once: it may be a pipe. An error is an *Error. The
// node of an empty file is nil.
func Read(path string) (*Node, Format, error) {
	data, err := Bytes(path)
	if err != nil {
		return nil, "", err
	}
	format := formatOf(path, data)
	root, err := Parse(data, format)
	return root, format, err
}

// Parse reads the text of a file.
func Parse(data []byte, format Format) (*Node, error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	return parse(data, format)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// formatOf derives the format from the name or, if that is inconclusive, from
// the first character.
func formatOf(path string, data []byte) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return JSON
	case ".yaml", ".yml":
		return YAML
	}
	if bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(data, byteOrderMark)), []byte("{")) {
		return JSON
	}
	return YAML
}

// Bytes returns the content of a file of at most 1 MiB. An error is an
// *Error.
func Bytes(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, plain(err)
	}
	switch {
	case info.IsDir():
		return nil, &Error{Text: "it is a folder, want a file"}
	case info.Size() > maxFile:
		return nil, tooLarge()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	// The size in info is not reliable for a device or a growing file.
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, plain(err)
	}
	if len(data) > maxFile {
		return nil, tooLarge()
	}
	return data, nil
}

func tooLarge() error { return &Error{Text: fmt.Sprintf("it is larger than %d bytes", maxFile)} }

// plain removes the path from a system error; the caller adds it.
func plain(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return &Error{Text: err.Error()}
}
