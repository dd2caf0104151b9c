package up

import (
	"errors"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUpSaysWhatCanBeTyped(t *testing.T) {
	nowhere := func(string) (string, error) { return "", errors.New("not on PATH") }
	found := func(string) (string, error) { return "/usr/bin/signalbox", nil }
	for _, c := range []struct {
		arg0, want string
		look       func(string) (string, error)
	}{
		{"signalbox", "signalbox", found},
		{"/tmp/go-build2255267707/b001/exe/signalbox", "signalbox", found},
		{"/tmp/go-build2255267707/b001/exe/signalbox", "go run ./cmd/signalbox", nowhere},
		{"bin/signalbox", "bin/signalbox", nowhere},
	} {
		if got := Command(c.arg0, c.look); got != c.want {
			t.Errorf("called as %s: %q, want %q", c.arg0, got, c.want)
		}
	}
	t.Setenv("npm_command", "exec")
	if got := Command("/x/node_modules/@signalbox-ai/linux-x64/bin/signalbox", found); got != "npx signalbox" {
		t.Errorf("called by npx: %q", got)
	}
}
