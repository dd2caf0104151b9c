package queuetools_test

import (
	"os"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
)

// docs/queue-tools.md lists every tool of the queue with every argument.
func TestQueueToolsAreInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/queue-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "|` ")] = cells[1]
		}
	}
	for _, tool := range queueTools {
		row, ok := rows[tool]
		if !ok {
			t.Errorf("there is no row for %s", tool)
		}
		for _, name := range queuetools.Arguments(tool) {
			if !strings.Contains(row, "`"+name+"`") {
				t.Errorf("the row of %s does not have %s: %s", tool, name, row)
			}
		}
	}
	if len(rows) != len(queueTools) {
		t.Errorf("%d rows for %d tools", len(rows), len(queueTools))
	}
}
