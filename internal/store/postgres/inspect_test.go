package postgres

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Inspecting a server creates no store, and finds an existing one.
func TestInspectChangesNothing(t *testing.T) {
	url := testserver.Postgres(t)
	for _, opened := range []bool{false, true} {
		if opened {
			g, err := Open(t.Context(), Options{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = g.Close() })
		}
		info, err := Inspect(t.Context(), url)
		if err != nil || info.Kind != "postgres" || info.Grade != store.GradeDisk || (info.Schema > 0) != opened {
			t.Errorf("a store is there: %t, and %+v, %v", opened, info, err)
		}
	}
	if _, err := Inspect(t.Context(), "postgres://u:swordfish@127.0.0.1:1/db"); err == nil || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("%v", err)
	}
}

// The grade matches the description.
func TestGrades(t *testing.T) {
	for _, c := range []struct {
		have guarantees
		want store.Grade
	}{
		{guarantees{synchronous: "on", fsync: true, pages: true}, store.GradeDisk},
		{guarantees{synchronous: "off", fsync: true, pages: true}, store.GradeWeak},
		{guarantees{synchronous: "on", pages: true}, store.GradeWeak},
		{guarantees{synchronous: "local", standbys: "a", fsync: true}, store.GradeDisk},
		{guarantees{synchronous: "remote_write", standbys: "a", fsync: true}, store.GradeDisk},
		{guarantees{synchronous: "remote_apply", standbys: "a", fsync: true}, store.GradeReplicas},
	} {
		if got := c.have.grade(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.have, got, c.want)
		}
	}
}
