package access

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// ofTasks begin the paths that have the id of a task in them.
var ofTasks = []string{"/api/queue/{id}", "/api/tools/tasks/{id}", "/api/activities/{id}"}

// ResolveImported replaces the id that a task had in the queue that it was imported
// from, in the path, by the one that it has here. What is no such id stays.
func ResolveImported(e *engine.Engine, r *http.Request, route api.Route) error {
	if !slices.ContainsFunc(ofTasks, func(path string) bool { return strings.HasPrefix(route.Path, path) }) {
		return nil
	}
	id, err := ImportedID(r.Context(), e, r.PathValue("id"))
	r.SetPathValue("id", id)
	return err
}

// ImportedID is the id here of a task that had that one in the queue that it was
// imported from. An id of ours, and what no task had, is returned as it is.
func ImportedID(ctx context.Context, e *engine.Engine, id string) (string, error) {
	if signalbox.ValidID(id) {
		return id, nil
	}
	t, err := store.Imported(ctx, e.Read(), id)
	switch signalbox.CodeOf(err) {
	case "":
		return t.ID, nil
	case signalbox.CodeNotFound:
		return id, nil
	}
	return id, err
}
