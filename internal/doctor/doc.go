// Package doctor checks what a director depends on and cannot see by itself: the rows of its store, its data
// folder, its host, its agents, and the limits of the programs it starts. Each check is a
// director.DoctorCheck, which internal/serve/director passes to the HTTP API; without a running director, the
// command line runs some of them by itself. A check reads and changes nothing, and its cost does not grow
// with the history.
package doctor

import (
	"context"
	"fmt"

	"github.com/signalbox-ai/signalbox/api"
)

// CheckFunc is one check; it is a director.DoctorCheck.
type CheckFunc = func(ctx context.Context, admin bool) []api.Check

// Areas.
const (
	areaLimits  = "limits"
	areaSandbox = "sandbox"
	areaStore   = "store"
	areaData    = "data"
	areaHost    = "host"
	areaClock   = "clock"
	areaAgents  = "agents"
)

func fine(area, format string, args ...any) api.Check {
	return api.Check{Area: area, State: "ok", Text: fmt.Sprintf(format, args...)}
}

func warning(area, cure, format string, args ...any) api.Check {
	return api.Check{Area: area, State: "warn", Text: fmt.Sprintf(format, args...), Cure: cure}
}

func failure(area, cure, format string, args ...any) api.Check {
	return api.Check{Area: area, State: "fail", Text: fmt.Sprintf(format, args...), Cure: cure}
}
