package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Narrowing is how a route is restricted for a caller that is limited to some agents.
type Narrowing int

const (
	Closed    Narrowing = iota // refused, the default
	Free                       // allowed: shows nothing about agents or tasks
	OfTask                     // {id} is a task, and the caller must be allowed to see it
	OfAgent                    // {name} is an agent, and the caller must be allowed to use it
	ByHandler                  // the handler filters or refuses
)

// Narrow refuses requests beyond a caller's limits, and requests for other callers' tasks
// if the caller has only the right to its own. It answers for things that the caller may
// not see as if they did not exist.
func (g *Gate) Narrow(r *http.Request, route api.Route, how Narrowing, c Caller) error {
	if c.Who.Limited() {
		if err := g.narrowToAgents(r, how, c); err != nil {
			return err
		}
	}
	if len(route.Own) > 0 && !c.Who.Has(signalbox.Scope(route.Scope)) {
		return g.ownsTask(r, route, c.Who)
	}
	return nil
}

// ownsTask refuses a task of another owner.
func (g *Gate) ownsTask(r *http.Request, route api.Route, who signalbox.Principal) error {
	id := r.PathValue("id")
	if !signalbox.ValidID(id) {
		return nil // the handler reports that
	}
	t, err := g.engine.Read().Task(r.Context(), id)
	if err != nil || who.Key() != "" && t.Owner == who.Key() {
		return err
	}
	return httpio.Refuse(signalbox.CodeForbidden, "use a token that has it, or that of the task's submitter",
		"this needs the scope %s for the task of another submitter, and %s has %s", route.Scope, who.String(), ScopeWords(who.Scopes))
}

func (g *Gate) narrowToAgents(r *http.Request, how Narrowing, c Caller) error {
	switch how {
	case Closed:
		return httpio.Refuse(signalbox.CodeForbidden, "use a token without limits", "this is not for a caller that is limited to some agents (%s)", strings.Join(c.Who.Agents, ", "))
	case OfAgent:
		if name := r.PathValue("name"); !c.Who.MayUse(name) {
			return c.Who.NoAgent(httpio.Clip(name))
		}
	case OfTask:
		return g.SeesTask(r.Context(), r.PathValue("id"), c.Who)
	case Free, ByHandler:
	}
	return nil
}

// SeesTask returns CodeNotFound, with the message of the store, for a task that the
// principal may not see.
func (g *Gate) SeesTask(ctx context.Context, id string, who signalbox.Principal) error {
	if !signalbox.ValidID(id) {
		return nil // the handler reports that
	}
	t, err := g.engine.Read().Task(ctx, id)
	if err == nil && !who.SeesTask(&t) {
		err = signalbox.Errorf(signalbox.CodeNotFound, "there is no task %q: it never existed or has been pruned", id)
	}
	return err
}

// HideAgentNames removes the names of other agents from an error for a limited caller.
func HideAgentNames(err error, r *http.Request, c Caller) error {
	var e *signalbox.Error
	if c.Who.Limited() && errors.As(err, &e) && e.Code == signalbox.CodeNotFound && e.Field == "agent" && r.PathValue("name") != "" {
		return c.Who.NoAgent(httpio.Clip(r.PathValue("name")))
	}
	return err
}

// VisibleTasks returns the tasks of a list that the caller may see. A page may become
// shorter, even empty, and still have a next one.
func VisibleTasks(tasks []signalbox.Task, c Caller) []signalbox.Task {
	if !c.Who.Limited() {
		return tasks
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t signalbox.Task) bool { return !c.Who.SeesTask(&t) })
}

// VisibleIDs is VisibleTasks for ids.
func (g *Gate) VisibleIDs(ctx context.Context, ids []string, c Caller) ([]string, error) {
	if !c.Who.Limited() {
		return ids, nil
	}
	var seen []string
	for _, id := range ids {
		err := g.SeesTask(ctx, id, c.Who)
		if err == nil {
			seen = append(seen, id)
		} else if signalbox.CodeOf(err) != signalbox.CodeNotFound {
			return nil, err
		}
	}
	return seen, nil
}
