package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines reads server-sent events. Of an event only its data counts here.
type lines struct{ from *bufio.Reader }

func newLines(r io.Reader) *lines { return &lines{bufio.NewReader(r)} }

var errTooLong = errors.New("an event of it is too long")

// event returns the data of the next event that has any.
func (l *lines) event() ([]byte, error) {
	var data []byte
	for {
		line, err := l.line(maxRelayed - len(data))
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if len(data) > 0 {
				return data, nil
			}
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		}
	}
}

// line returns the next one without its end.
func (l *lines) line(most int) ([]byte, error) {
	var line []byte
	for {
		part, err := l.from.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}
