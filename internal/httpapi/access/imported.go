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

// ofTasks are the prefixes of paths with the id of a task.
var ofTasks = []string{"/api/queue/{id}", "/api/tools/tasks/{id}", "/api/activities/{id}"}

// ResolveImported replaces the id in the path with the task's id here, if it is the id that
// the task had in the queue that it was imported from.
func ResolveImported(e *engine.Engine, r *http.Request, route api.Route) error {
	if !slices.ContainsFunc(ofTasks, func(path string) bool { return strings.HasPrefix(route.Path, path) }) {
		return nil
	}
	id, err := ImportedID(r.Context(), e, r.PathValue("id"))
	r.SetPathValue("id", id)
	return err
}

// ImportedID returns the id here of a task that had this id in the queue that it was
// imported from. It returns ids of this director and unknown ids unchanged.
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
