package mcp

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// fuzzTap has one call in flight, with the ID 1, and records what the call is
// told.
func fuzzTap(said *[]string) *interceptor {
	t := newInterceptor("s", slog.New(slog.DiscardHandler), newMask(toolconf.Server{}), func(err error) { *said = append(*said, "bad: "+err.Error()) })
	return t
}

func told(said *[]string) func(jsonrpc.Message) {
	return func(m jsonrpc.Message) { *said = append(*said, fmt.Sprintf("%T", m)) }
}

var frames = []string{
	`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`, `[{"jsonrpc":"2.0","id":1,"result":{}},1]`,
	`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0"}`, `[]`, `{`, `null`, `{"id":{}}`, `{"jsonrpc":"2.0","id":1e400,"result":{}}`, "\xff", `{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`,
}

// FuzzLines: however a server's output is cut into pieces, the same messages
// are delivered, and no more than there are lines or elements of batches.
func FuzzLines(f *testing.F) {
	for _, s := range frames {
		f.Add(s + "\n" + s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		read := func(in io.Reader) (said []string) {
			g := &messageReader{interceptor: fuzzTap(&said), deliver: told(&said)}
			if _, err := io.Copy(struct{ io.Writer }{g}, in); err != nil {
				t.Fatal(err)
			}
			g.end()
			return said
		}
		whole, pieces := read(strings.NewReader(s)), read(iotest.OneByteReader(strings.NewReader(s)))
		if strings.Join(whole, " ") != strings.Join(pieces, " ") {
			t.Fatalf("%q: %v, byte by byte %v", s, whole, pieces)
		}
		if most := strings.Count(s, "\n") + strings.Count(s, ",") + 2; len(whole) > 2*most {
			t.Fatalf("%q: %d messages", s, len(whole))
		}
	})
}

// FuzzEvents: however an event stream is cut into pieces, the SDK reads the
// same from it, and the stream ends.
func FuzzEvents(f *testing.F) {
	for _, s := range frames {
		f.Add("event: message\ndata: "+s+"\n\n", false)
		f.Add("event: endpoint\ndata: /x\n\ndata: "+s+"\n\n", true)
	}
	f.Add("data: {\ndata: }\n\nid: 1\n\n: c\n\n", false)
	f.Add(strings.Repeat("x", 70_000)+"\n\n", false)
	f.Fuzz(func(t *testing.T, s string, old bool) {
		read := func(in io.Reader) string {
			var said []string
			e := newEvents(io.NopCloser(in), fuzzTap(&said), old)
			out, err := io.ReadAll(e)
			return fmt.Sprintf("%q %v %v", out, err, said)
		}
		whole, pieces := read(strings.NewReader(s)), read(iotest.OneByteReader(strings.NewReader(s)))
		if whole != pieces {
			t.Fatalf("%q:\n%s\nbyte by byte\n%s", s, whole, pieces)
		}
	})
}
