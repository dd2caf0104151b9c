package director

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// How a route is narrowed for a caller that is limited to some agents.
type narrowing int

const (
	narrowClosed  narrowing = iota // not for such callers: deny by default
	narrowFree                     // it shows nothing of agents or tasks
	narrowTask                     // {id} is a task, which the caller must see
	narrowAgent                    // {name} is an agent, which the caller may use
	narrowHandler                  // the handler leaves out, or refuses, what is not the caller's
)

// narrow refuses what lies beyond a caller's limits, and what is not its own
// where it has the right to that alone. What one may not see is answered as if it
// were not there.
func (d *Director) narrow(r *http.Request, route api.Route, how narrowing, c caller) error {
	if c.limited() {
		if err := d.narrowToAgents(r, how, c); err != nil {
			return err
		}
	}
	if len(route.Own) > 0 && !c.who.Has(signalbox.Scope(route.Scope)) {
		return d.ownsTask(r, route, c.who)
	}
	return nil
}

// ownsTask refuses the task of somebody else.
func (d *Director) ownsTask(r *http.Request, route api.Route, who signalbox.Principal) error {
	id := r.PathValue("id")
	if !signalbox.ValidID(id) {
		return nil // the handler says so
	}
	t, err := d.engine.Read().Task(r.Context(), id)
	if err != nil || who.Key() != "" && t.Owner == who.Key() {
		return err
	}
	return refuse(signalbox.CodeForbidden, "show a token that has it, or that of who asked for the task",
		"this needs the scope %s where somebody else asked for the task, and %s has %s", route.Scope, who.String(), scopeWords(who.Scopes))
}

func (d *Director) narrowToAgents(r *http.Request, how narrowing, c caller) error {
	switch how {
	case narrowClosed:
		return refuse(signalbox.CodeForbidden, "show a token without limits", "this is not for a caller that is limited to some agents (%s)", strings.Join(c.who.Agents, ", "))
	case narrowAgent:
		if name := r.PathValue("name"); !c.who.MayUse(name) {
			return c.who.NoAgent(clip(name))
		}
	case narrowTask:
		return d.seesTask(r.Context(), r.PathValue("id"), c.who)
	case narrowFree, narrowHandler:
	}
	return nil
}

// seesTask returns CodeNotFound, in the store's own words, for a task that the
// principal does not see.
func (d *Director) seesTask(ctx context.Context, id string, who signalbox.Principal) error {
	if !signalbox.ValidID(id) {
		return nil // the handler says so
	}
	t, err := d.engine.Read().Task(ctx, id)
	if err == nil && !who.SeesTask(&t) {
		err = signalbox.Errorf(signalbox.CodeNotFound, "there is no task %q: it never existed or has been pruned", id)
	}
	return err
}

// discreet takes the names of other agents out of an error for a caller that
// is not to know of them.
func discreet(err error, r *http.Request, c caller) error {
	var e *signalbox.Error
	if c.limited() && errors.As(err, &e) && e.Code == signalbox.CodeNotFound && e.Field == "agent" && r.PathValue("name") != "" {
		return c.who.NoAgent(clip(r.PathValue("name")))
	}
	return err
}

// visible leaves out of a list of tasks what the caller does not see. A page
// may become shorter by it, even empty, and still have a next.
func visible(tasks []signalbox.Task, c caller) []signalbox.Task {
	if !c.limited() {
		return tasks
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t signalbox.Task) bool { return !c.who.SeesTask(&t) })
}

// visibleIDs is visible for ids.
func (d *Director) visibleIDs(ctx context.Context, ids []string, c caller) ([]string, error) {
	if !c.limited() {
		return ids, nil
	}
	var seen []string
	for _, id := range ids {
		err := d.seesTask(ctx, id, c.who)
		if err == nil {
			seen = append(seen, id)
		} else if signalbox.CodeOf(err) != signalbox.CodeNotFound {
			return nil, err
		}
	}
	return seen, nil
}

// visiblePauses leaves out the queues of agents that the caller may not use.
func visiblePauses(pauses []signalbox.Pause, c caller) []signalbox.Pause {
	return slices.DeleteFunc(slices.Clone(pauses), func(p signalbox.Pause) bool {
		name, ok := signalbox.OnlyAgent(p.Queue)
		return ok && !c.who.MayUse(name)
	})
}
