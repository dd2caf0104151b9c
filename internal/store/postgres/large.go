package postgres

import (
	"encoding/binary"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// A request and a result are one value each: a version, their texts, each led
// by its length, and the rest as package pack has it.
const largeVersion = 1

func appendRequest(b []byte, r *signalbox.Request) []byte {
	return append(appendText(append(b, largeVersion), r.Prompt), pack.Request(r)...)
}

func readRequest(b, sealed []byte) (*signalbox.Request, error) {
	texts, rest, ok := cutTexts(b, 1)
	if !ok {
		return nil, damaged("request")
	}
	r, err := pack.ReadRequest(texts[0], rest, sealed)
	return &r, err
}

func appendResult(b []byte, r *signalbox.Result) []byte {
	return append(appendText(appendText(append(b, largeVersion), r.Output), r.Tail), pack.Result(r)...)
}

func readResult(b []byte) (*signalbox.Result, error) {
	texts, rest, ok := cutTexts(b, 2)
	if !ok {
		return nil, damaged("result")
	}
	r, err := pack.ReadResult(texts[0], texts[1], rest)
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

func damaged(what string) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the %s of the task cannot be read: its row is damaged, or was changed by another program", what)
}
