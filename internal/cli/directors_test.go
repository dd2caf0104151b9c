package cli_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The directors that share a store: which live, and what each dispatches to.
func TestDirectors(t *testing.T) {
	now := noon.Add(11 * time.Minute) // the time of the command
	alfa := apitest.NewCluster(t, 1, func(o *apitest.Options) { o.Engine.Now = func() time.Time { return now } }).Members[0]
	beat := func(at time.Time, row store.Director, take ...string) {
		for _, agent := range take {
			alfa.AddAgent(agent, 1)
		}
		if _, err := alfa.View.Beat(t.Context(), store.Beat{Director: row, Take: take, Now: at}); err != nil {
			t.Fatal(err)
		}
	}
	row := alfa.Peers.Row
	row.URL, row.Version, row.StartedAt, row.Expires = "http://alfa:8080", "1.2.3", now.Add(-3*time.Hour), now.Add(time.Hour)
	beat(now, row, "a1", "a2", "a3", "a4", "a5", "a6", "a7")
	beat(now.Add(-10*time.Minute), store.Director{ID: "bravo", Run: "bravo-1", Key: "k", URL: "http://bravo:8080", Version: "1.2.2", StartedAt: now.Add(-time.Hour), Expires: now.Add(-7 * time.Minute)})
	p := start(t, &director{URL: alfa.HTTP.URL}, cli.IO{}, "directors")
	p.expectExit(t, 0)
	want := `INSTANCE  STATE           VERSION  UP FOR  URL                AGENTS
alfa *    alive           1.2.3    3 h     http://alfa:8080   a1, a2, a3, a4, a5 and 2 more
bravo     gone for 7 min  1.2.2    -       http://bravo:8080  -
`
	if p.out.String() != want {
		t.Errorf("got  %s\nwant %s", p.out, want)
	}
	p = start(t, &director{URL: alfa.HTTP.URL}, cli.IO{}, "directors", "list", "--json")
	p.expectExit(t, 0)
	p.out.waitFor(t, `"instance": "alfa"`)
}
