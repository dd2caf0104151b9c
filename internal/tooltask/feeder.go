package tooltask

import (
	"strings"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/internal/tail"
)

// feeder gives a tail what a tool prints, whole characters at a time: a piece
// may end within one, and the next piece may be of the other stream.
type feeder struct {
	to   *tail.Tail
	rest map[string][]byte
	any  bool
}

// take is gateway.Call.Log.
func (f *feeder) take(stream string, text []byte) {
	if len(text) == 0 {
		return
	}
	f.any = true
	if before := f.rest[stream]; len(before) > 0 {
		text = append(before, text...)
		delete(f.rest, stream)
	}
	whole := wholeRunes(text)
	if whole < len(text) {
		if f.rest == nil {
			f.rest = map[string][]byte{}
		}
		f.rest[stream] = append([]byte(nil), text[whole:]...)
	}
	f.put(text[:whole])
}

// end hands on what never became a whole character. The tool prints no more.
func (f *feeder) end() {
	for stream, text := range f.rest {
		f.put(text)
		delete(f.rest, stream)
	}
}

func (f *feeder) put(text []byte) {
	if len(text) > 0 {
		f.to.Append(strings.ToValidUTF8(string(text), "\uFFFD"))
	}
}

// wholeRunes is how much of text does not end within a character.
func wholeRunes(text []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}
