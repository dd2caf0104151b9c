// Package doctor looks at what a director stands on and cannot see by itself:
// the rows of its store, its data folder, its host, the agents it speaks to,
// and the limits that hold for the programs it starts. Each look has the shape
// of director.DoctorCheck, and internal/serve/director hands it to the HTTP API; where no
// director runs, the command line asks some of them by itself. A look reads and
// changes nothing, and what it costs does not grow with the history.
package doctor

import (
	"context"
	"fmt"

	"github.com/signalbox-ai/signalbox/api"
)

// Look is one look; it is a director.DoctorCheck.
type Look = func(ctx context.Context, admin bool) []api.Check

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
