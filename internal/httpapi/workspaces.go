package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// workspaceHandlers list the worktrees of agents, and discard them.
type workspaceHandlers struct {
	engine *engine.Engine
	audit  *access.AuditLog
	runs   Runs
}

// list is GET /api/workspaces. Callers that are limited to some agents see the worktrees of these agents.
func (h *workspaceHandlers) list(w http.ResponseWriter, r *http.Request) error {
	rows, err := h.engine.Read().Agents(r.Context())
	if err != nil {
		return err
	}
	who, only := access.CallerOf(r).Who, httpio.Param(r, "agent")
	rows = slices.DeleteFunc(slices.Clone(rows), func(a signalbox.Agent) bool {
		return signalbox.IsExecutor(a.Name) || !who.MayUse(a.Name) || only != "" && a.Name != only
	})
	if only != "" && len(rows) == 0 {
		if _, err := agentRow(r.Context(), h.engine, only); err != nil {
			return err
		}
		return signalbox.Errorf(signalbox.CodeNotFound, "there is no agent %s", only) // or the caller may not use it
	}
	slices.SortFunc(rows, func(a, b signalbox.Agent) int { return strings.Compare(a.Name, b.Name) })
	return httpio.Answer(w, http.StatusOK, h.ask(r.Context(), rows))
}

// ask asks all agents concurrently.
func (h *workspaceHandlers) ask(ctx context.Context, rows []signalbox.Agent) api.Workspaces {
	lists := make([]api.AgentWorkspaces, len(rows))
	out := api.Workspaces{Workspaces: []api.Workspace{}, Agents: make([]api.WorkspaceAgent, len(rows))}
	var wg sync.WaitGroup
	for i := range rows {
		out.Agents[i].Agent = rows[i].Name
		if err := h.mayAsk(&rows[i]); err != nil {
			out.Agents[i].Message = err.Error()
			continue
		}
		wg.Go(func() {
			var err error
			if lists[i], err = h.runs.Workspaces(ctx, rows[i].Name); err != nil {
				out.Agents[i].Message = err.Error()
			}
		})
	}
	wg.Wait()
	for i, list := range lists {
		g := &out.Agents[i]
		g.Bytes, g.Mirrors, g.MaxBytes, g.MinFreeBytes, g.Full = list.Bytes, list.Mirrors, list.MaxBytes, list.MinFreeBytes, list.Full
		for _, v := range list.Workspaces {
			out.Workspaces = append(out.Workspaces, api.Workspace{Agent: rows[i].Name, AgentWorkspace: v})
		}
	}
	return out
}

// mayAsk returns an error for an agent that accepts no connections.
func (h *workspaceHandlers) mayAsk(row *signalbox.Agent) error {
	if row.Source == signalbox.AgentPull {
		return signalbox.Errorf(signalbox.CodeUnsupported,
			"agent %s pulls its tasks and accepts no connections, so its worktrees are only on its host, in the folder worktrees of its data; it removes those whose work has landed", row.Name)
	}
	return nil
}

// discard is DELETE /api/agents/{name}/workspaces/{workspace}. An attempt with an unknown
// outcome is recorded as failed.
func (h *workspaceHandlers) discard(w http.ResponseWriter, r *http.Request) error {
	row, err := agentRow(r.Context(), h.engine, r.PathValue("name"))
	if err == nil {
		err = h.mayAsk(&row)
	}
	if err != nil {
		return err
	}
	name := r.PathValue("workspace")
	how := api.DiscardWorkspace{Seen: httpio.Param(r, "seen")}
	if s := httpio.Param(r, "delete_branch"); s != "" {
		if how.DeleteBranch, err = strconv.ParseBool(s); err != nil {
			return signalbox.Invalid("delete_branch", "delete_branch must be true or false, not %q", httpio.Clip(s))
		}
	}
	done, err := h.runs.DiscardWorkspace(r.Context(), row.Name, name, how)
	audit := signalbox.Audit{EventType: "agent", Action: "discard_workspace", AgentName: row.Name, Resource: httpio.Clip(name), Result: access.ResultOf(err)}
	if code := signalbox.CodeOf(err); code == signalbox.CodeNotFound || code == signalbox.CodeConflict {
		return err // nothing was changed
	}
	if err != nil {
		if failed := h.audit.Write(r, audit); failed != nil {
			return failed
		}
		return err
	}
	return h.audit.WriteAndAnswer(w, r, audit, http.StatusOK, done)
}
