package postgres

import (
	"regexp"
	"testing"
)

// A range between two rows goes by an index, as its plan says, and reads on to
// the end of what the first column has all the same: a claim would cost the
// more, the more waits behind it.
func TestNoStatementScansARange(t *testing.T) {
	rows := regexp.MustCompile(`\)\s+BETWEEN\s+\(`)
	for _, sql := range statements {
		if rows.MatchString(sql) {
			t.Errorf("compare each column separately (seekEqualRow): %s", sql)
		}
	}
}
