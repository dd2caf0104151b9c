package local

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzSecrets: secrets that are split off are not in what is stored, and are restored unchanged.
func FuzzSecrets(f *testing.F) {
	for _, s := range []string{"", "{}", `{"key":"k","a":1}`, `{"key":{"deep":[1,2]}}`, `{"key":null}`, `[1]`, `{"key":`, `{"a":"key"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var was map[string]any
		if s != "" && (json.Unmarshal([]byte(s), &was) != nil || was == nil) {
			_, _, _ = splitSecrets(json.RawMessage(s), []string{"key"}) // refused or unchanged
			return
		}
		rest, secrets, err := splitSecrets(json.RawMessage(s), []string{"key"})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		var stored map[string]any
		if len(rest) > 0 {
			if err := json.Unmarshal(rest, &stored); err != nil {
				t.Fatalf("%q leaves %q: %v", s, rest, err)
			}
		}
		if _, left := stored["key"]; left {
			t.Fatalf("%q leaves the secret in %q", s, rest)
		}
		whole, err := withSecrets(rest, secrets)
		if err != nil {
			t.Fatal(err)
		}
		var is map[string]any
		if len(whole) > 0 {
			if err := json.Unmarshal(whole, &is); err != nil {
				t.Fatal(err)
			}
		}
		if len(was)+len(is) > 0 && !reflect.DeepEqual(was, is) {
			t.Fatalf("%q comes back as %q", s, whole)
		}
	})
}
