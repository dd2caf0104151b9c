package e2e_test

import (
	"os"
	"strings"
	"testing"
)

// docs/development/tests.md names existing tests, and at least one in each row of
// its tables.
func TestProofsHaveTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/development/tests.md")
	if err != nil {
		t.Fatal(err)
	}
	there := allTests(t)
	rows := 0
	for line := range strings.Lines(string(page)) {
		tests := proofForm.FindAllStringSubmatch(line, -1)
		for _, m := range tests {
			if !there[m[1]+" "+m[2]] {
				t.Errorf("docs/development/tests.md names %s of %s, and there is no such test", m[2], m[1])
			}
		}
		inTable := strings.HasPrefix(line, "| ") && !strings.Contains(line, "| shown by |")
		if inTable && strings.Count(line, " | ") == 1 {
			if rows++; len(tests) == 0 {
				t.Errorf("a row without a test: %s", line)
			}
		}
	}
	if rows < 30 {
		t.Errorf("the page has %d rows only", rows)
	}
}
