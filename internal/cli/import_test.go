package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/cli"
)

// A failed import prints no new ids: no task has them.
func TestAnImportThatFailsNamesNoIDs(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".tasksQueue")
	if err := os.WriteFile(file, []byte(`[{"id":"a1","toolName":"draw","status":"pending","createdAt":"2026-03-01T12:00:00Z"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	dry := start(t, newDirector(t), cli.IO{}, "import", "--dry-run", file)
	dry.expectExit(t, 0)
	if got := dry.out.String(); !strings.Contains(got, "a1 → queue-") {
		t.Errorf("a dry run: %s", got)
	}
	f := newDirector(t)
	f.proxy.stop()
	p := start(t, f, cli.IO{}, "import", file)
	p.expectExit(t, 7)
	if got := p.out.String(); strings.Contains(got, "→") || !strings.Contains(got, "Imported 0 tasks") {
		t.Errorf("a director that is not there: %s", got)
	}
}
