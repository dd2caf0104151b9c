package invariant_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// rumour is a store with falsified directors.
type rumour struct {
	store.Reader
	directors func([]store.Director) []store.Director
}

func (r rumour) Directors(ctx context.Context) ([]store.Director, error) {
	list, err := r.Reader.Directors(ctx)
	return r.directors(list), err
}

func TestCheckFindsWhatIsWrongWithDirectors(t *testing.T) {
	s := memory.New(memory.Options{})
	for _, name := range []string{"x", "y"} {
		d := store.Director{ID: name, Run: name, Expires: noon.Add(time.Second)}
		if _, err := s.Beat(context.Background(), store.Beat{Director: d, Take: []string{"agent of " + name}, Now: noon}); err != nil {
			t.Fatal(err)
		}
	}
	for said, lie := range map[string]func([]store.Director) []store.Director{
		"":                       func(l []store.Director) []store.Director { return l },
		"y stands before x":      func(l []store.Director) []store.Director { slices.Reverse(l); return l },
		"agent of y is held by ": func(l []store.Director) []store.Director { return l[:1] },
	} {
		err := invariant.Check(context.Background(), rumour{s, lie})
		if found := err != nil; found != (said != "") || found && !strings.Contains(err.Error(), said) {
			t.Errorf("found %v, want something that says %q", err, said)
		}
	}
}
