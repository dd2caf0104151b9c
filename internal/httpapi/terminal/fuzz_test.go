package terminal

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// FuzzTerminal checks that a terminal ends unless its first message is "auth".
func FuzzTerminal(f *testing.F) {
	for _, s := range []string{`{"type":"auth","token":"t","cols":80,"rows":24}`, `{"type":"resize","cols":-1}`, `{`, ``, `[]`, `{"type":"auth","cols":1e9}`, "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := parseFirst([]byte(s))
		if err != nil && !strings.Contains(err.Error(), `"type":"auth"`) {
			t.Fatalf("%q: %v", s, err)
		}
		if err == nil && m.Type != "auth" {
			t.Fatalf("%q: %+v", s, m)
		}
		if err != nil && m != (api.TerminalMessage{}) {
			t.Fatalf("%q is refused, and says %+v", s, m)
		}
	})
}
