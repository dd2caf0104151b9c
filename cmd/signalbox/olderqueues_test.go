package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// A data folder in which another queue has left tasks leads to signalbox import.
func TestOlderQueuesAreNoted(t *testing.T) {
	note := func(c config.Config) string {
		var log bytes.Buffer
		noteOlderQueues(c, slog.New(slog.NewTextHandler(&log, nil)))
		return log.String()
	}
	c := config.Config{Data: t.TempDir()}
	if got := note(c); got != "" {
		t.Errorf("an empty folder: %s", got)
	}
	for _, name := range []string{"pending/a.json", "dispatched/b.json", "pending/c.txt"} {
		path := filepath.Join(c.Data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := note(c); !strings.Contains(got, "tasks=2") || !strings.Contains(got, "signalbox import "+c.Data) {
		t.Error(got)
	}
}
