package pack

import (
	"encoding/binary"

	"github.com/signalbox-ai/signalbox"
)

// A request and a result are one value each: a version, their texts, each led
// by its length, and the rest as package pack has it.
const largeVersion = 1

// RequestRow appends a whole request but what is sealed to b.
func RequestRow(b []byte, r *signalbox.Request) []byte {
	return append(appendText(append(b, largeVersion), r.Prompt), Request(r)...)
}

// ReadRequestRow reads what RequestRow wrote, of a task with that environment.
func ReadRequestRow(b, sealed []byte) (*signalbox.Request, error) {
	texts, rest, ok := cutTexts(b, 1)
	if !ok {
		return nil, damaged("request")
	}
	r, err := ReadRequest(texts[0], rest, sealed)
	return &r, err
}

// ResultRow appends a whole result to b.
func ResultRow(b []byte, r *signalbox.Result) []byte {
	return append(appendText(appendText(append(b, largeVersion), r.Output), r.Tail), Result(r)...)
}

// ReadResultRow reads what ResultRow wrote.
func ReadResultRow(b []byte) (*signalbox.Result, error) {
	texts, rest, ok := cutTexts(b, 2)
	if !ok {
		return nil, damaged("result")
	}
	r, err := ReadResult(texts[0], texts[1], rest)
	return &r, err
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cutTexts reads the first n texts of a value.
func cutTexts(b []byte, n int) (texts []string, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != largeVersion {
		return nil, nil, false
	}
	b = b[1:]
	for range n {
		size, led := binary.Uvarint(b)
		if led <= 0 || size > uint64(len(b)-led) {
			return nil, nil, false
		}
		texts = append(texts, string(b[led:led+int(size)])) //nolint:gosec // at most len(b)
		b = b[led+int(size):]                               //nolint:gosec // likewise
	}
	return texts, append([]byte(nil), b...), true
}
