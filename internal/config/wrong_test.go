package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryKeySaysWhatItWants gives each key values of all types: an invalid
// value is reported with the line and the key.
func TestEveryKeySaysWhatItWants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signalbox.yaml")
	env := func(name string) (string, bool) { return "/home/ada", name == "HOME" }
	values := []string{
		"[a, [b]]", "{a: 1, a: {b: 2}}", "true", "yes", "-7", "010", "0x1F", "1e3", "1.5", ".nan", "-.inf", "99999999999999999999", "1e400", "''", "' '", `"\0"`, "\"\\n\"",
		"!!binary x", "*gone", "\"${GONE}\"", "\"${\"", "2001-01-01", "~",
	}
	for _, x := range settings(new(Config)) {
		key := x.key
		refused := 0
		for _, value := range values {
			text := "# first\n" + strings.ReplaceAll(key, ".", ": {") + ": " + value + strings.Repeat("}", strings.Count(key, ".")) + "\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(Sources{File: path, Dir: filepath.Dir(path), Env: env})
			if err == nil {
				continue
			}
			refused++
			bad, ok := errors.AsType[Problems](err)
			for _, p := range bad {
				if ok = ok && strings.HasPrefix(p.Where, path+":2"); !ok || p.Key != "" && !strings.HasPrefix(p.Key, strings.SplitN(key, ".", 2)[0]) || len(p.String()) > 600 {
					t.Errorf("%s: %s: %v", key, value, p)
				}
			}
			if !ok {
				t.Errorf("%s: %s: %v", key, value, err)
			}
		}
		if refused < 4 {
			t.Errorf("%s refuses only %d of %d values", key, refused, len(values))
		}
	}
}
