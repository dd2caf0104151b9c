package postgres

import (
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// FuzzURL: an accepted address has a schema that needs no quoting, and bounded timeouts; no error contains
// the password.
func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"postgres://u:swordfish@h/db", "postgresql://h?schema=x&pool_max_conns=4", "postgres://h/db?schema=a%22b", "postgres://h/db?pool_max_conns=-1", "postgres://u:swordfish%zz@h/db", "postgres://u:swordfish%postgres://u:swordfish%zz@h/db",
		"postgres://h/db?unsafe=on&sslmode=disable", "postgres://", "host=h password=swordfish", "postgres://h:77777/db", "postgres://h1,h2:5433/db?target_session_attrs=any", "postgres://h/db?options=-c%20a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "file") || strings.Contains(s, "cert") || strings.Contains(s, "service") {
			return // they name files
		}
		p, err := parse(s)
		if err != nil {
			if signalbox.CodeOf(err) == "" || strings.Contains(err.Error(), "swordfish") {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if !plainName.MatchString(p.schema) || p.conns < 1 || p.config.ConnectTimeout <= 0 || p.config.RuntimeParams["search_path"] != `"`+p.schema+`"` {
			t.Fatalf("%q: schema %q, %d connections, %v", s, p.schema, p.conns, p.config.ConnectTimeout)
		}
	})
}
