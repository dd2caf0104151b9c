package push

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Timeouts for an agent to search its worktrees, in addition to AskTimeout.
const (
	listWait    = 20 * time.Second
	discardWait = time.Minute
)

// Workspaces asks an agent for its worktrees. An agent without worktrees support returns an empty list. Any
// director may ask.
//
// Codes: CodeAgentDown.
func (d *Dispatcher) Workspaces(ctx context.Context, agent string) (list api.AgentWorkspaces, err error) {
	conn, err := d.connTo(agent)
	if err != nil {
		return list, err
	}
	err = conn.call(ctx, listWait, http.MethodGet, "/workspaces", nil, &list)
	if unknownTask(err) { // an agent without the route answers like this, too
		return list, nil
	}
	if err != nil {
		return list, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s did not list its worktrees: %v", agent, err)
	}
	return list, nil
}

// DiscardWorkspace makes an agent discard a worktree. Any director may ask.
//
// Codes: CodeNotFound; CodeConflict if it is in use, or if something would be lost that how does not name;
// CodeAgentDown, after which the worktree may be gone.
func (d *Dispatcher) DiscardWorkspace(ctx context.Context, agent, name string, how api.DiscardWorkspace) (done api.WorkspaceDiscarded, err error) {
	conn, err := d.connTo(agent)
	if err != nil {
		return done, err
	}
	q := url.Values{}
	if how.Seen != "" {
		q.Set("seen", how.Seen)
	}
	if how.DeleteBranch {
		q.Set("delete_branch", "true")
	}
	err = conn.call(ctx, discardWait, http.MethodDelete, "/workspaces/"+url.PathEscape(name)+"?"+q.Encode(), nil, &done)
	no, refused := errors.AsType[*execution.Refusal](err)
	switch {
	case err == nil:
		return done, nil
	case refused && no.Status == http.StatusConflict:
		return done, signalbox.Errorf(signalbox.CodeConflict, "agent %s: %s", agent, execution.SanitizeText(no.Message))
	case unknownTask(err):
		return done, signalbox.Errorf(signalbox.CodeNotFound, "agent %s has no worktree %s", agent, name)
	}
	return done, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s did not discard the worktree %s: %v", agent, name, err)
}
