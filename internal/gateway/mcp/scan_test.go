package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestScanFindsTheIDOfAResponse(t *testing.T) {
	for text, want := range map[string]any{
		`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`:                             int64(7),
		`{"result":{"a":[{"id":1},"\"id\":2"],"id":"x"},"jsonrpc":"2.0","id":7}`: int64(7),
		`{"result":"{\"id\":3","id":"s\u0041"}`:                                  "sA",
		`{ "error" : {"id":1} , "id" : 9 }`:                                      int64(9),
		`{"id":7,"result":[`:                                                     int64(7),
		`{"id":7,"method":"x","result":1}`:                                       nil,
		`{"params":{"id":1},"id":7}`:                                             nil,
		`{"result":1}`:                                                           nil,
		`{"result":1,"id":null}`:                                                 nil,
		`{"result":1,"id":{"a":5}}`:                                              nil,
		`["result",1,"id",7]`:                                                    nil,
		`}}}}"`:                                                                  nil,
	} {
		for size := 1; size <= len(text); size += 3 { // in pieces of any size
			s := &idScanner{}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				s.feed([]byte(rest[:n]))
				rest = rest[n:]
			}
			id, ok := s.answers()
			if ok != (want != nil) || ok && id.Raw() != want {
				t.Errorf("%s in pieces of %d: %v, %v; want %v", text, size, id.Raw(), ok, want)
				break
			}
		}
	}
}

// FuzzScan compares the scanner with a parser that keeps everything.
func FuzzScan(f *testing.F) {
	f.Add(`{"result":{"id":1,"s":"\\\"id\":5"},"id":7}`)
	f.Add(`{"id":"a","error":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := &idScanner{}
		s.feed([]byte(text))
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &m) != nil || strings.Count(text, `"id"`) > 1 || len(text) > maxScanned {
			return // invalid input must not panic; nothing else is checked
		}
		_, result := m["result"]
		_, failed := m["error"]
		_, method := m["method"]
		want := idOf(m["id"])
		if id, ok := s.answers(); ok != ((result || failed) && !method && want.IsValid()) || ok && id != want {
			t.Errorf("%s: %v, %v; want %v", text, id.Raw(), ok, want.Raw())
		}
	})
}
