package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

// FuzzArguments: what a model wrote for arguments becomes a JSON object that the
// endpoint takes back; one that is an object already stays byte for byte, and
// what was mended once needs no mending.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":`, `{"a":[1,{"b":"c`, `{"a":tru`, `{"a":1}}`, `[1]`, ``, ` {}`, `{"a":"\u00`, `{"a":"\`, `{"a":-`, `{"a":1e`, `{,}`, `{"a" 1}`, "{\"a\":\"\xff\"}", `{"a":1,"a":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for name, mend := range map[string]func(string) string{"RepairArguments": llm.RepairArguments, "ObjectArguments": llm.ObjectArguments} {
			got := mend(raw)
			var object map[string]json.RawMessage
			if err := json.Unmarshal([]byte(got), &object); err != nil || object == nil {
				t.Fatalf("%s(%q) = %q: %v", name, raw, got, err)
			}
			if again := mend(got); again != got {
				t.Fatalf("%s(%q) = %q, and of that %q", name, raw, got, again)
			}
			if len(got) > 8*len(raw)+64 {
				t.Fatalf("%s: %d bytes become %d", name, len(raw), len(got))
			}
		}
	})
}
