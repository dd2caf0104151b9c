package verbs

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// Landings lists the ended tasks whose landing is open.
func (s *Store) Landings(ctx context.Context) ([]signalbox.Task, error) {
	docs, err := s.page(ctx, Page{Kind: kindLanding, BySort: true})
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	ids := make([]string, len(docs))
	for i := range docs {
		ids[i] = docs[i].ID
	}
	tasks, err := s.Tasks(ctx, ids)
	return slices.DeleteFunc(tasks, func(t signalbox.Task) bool { return !t.Landing.Open() }), err // it may have changed since
}
