package postgres

import (
	"regexp"
	"testing"
)

// A range between two rows uses an index, according to its plan, but reads all rows with the same first
// column: a claim would cost more, the more tasks wait.
func TestNoStatementScansARange(t *testing.T) {
	rows := regexp.MustCompile(`\)\s+BETWEEN\s+\(`)
	for _, sql := range statements {
		if rows.MatchString(sql) {
			t.Errorf("compare each column separately (seekEqualRow): %s", sql)
		}
	}
}
