package httpapi

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// resourceHandlers list the resources that runs hold.
type resourceHandlers struct{ engine *engine.Engine }

// list is GET /api/resources. Callers that are limited to some agents see what these agents hold.
func (h *resourceHandlers) list(w http.ResponseWriter, r *http.Request) error {
	all, err := h.resources(r.Context(), access.CallerOf(r).Who)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusOK, api.Resources{Resources: all})
}

func (h *resourceHandlers) resources(ctx context.Context, who signalbox.Principal) ([]api.Resource, error) {
	read := h.engine.Read()
	holds, err := read.Holds(ctx)
	running, err2 := read.InFlight(ctx)
	waiting, err3 := read.Waiting(ctx, "", store.Cursor{}, 1000)
	if err := cmp.Or(err, err2, err3); err != nil {
		return nil, err
	}
	configured := h.engine.Options().Resources
	all := []api.Resource{}
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		all = append(all, api.Resource{Kind: "resource", Name: name, Capacity: configured[name].Capacity, Free: configured[name].Capacity})
	}
	for _, t := range waiting {
		if t.Needs == nil {
			continue
		}
		for _, n := range *t.Needs {
			if i := slices.IndexFunc(all, func(r api.Resource) bool { return r.Name == n.Resource }); i >= 0 {
				all[i].Waiting++
			}
		}
	}
	folders := map[string]string{}
	for _, a := range h.engine.LiveAgents() {
		folders[a.Folder] = a.WorkDir
	}
	for _, hold := range holds {
		kind, name, exclusive := strings.Cut(hold.Resource, ":")
		if !exclusive {
			kind, name = "resource", hold.Resource
		} else if kind == "folder" {
			name = cmp.Or(folders[name], name)
		}
		i := slices.IndexFunc(all, func(r api.Resource) bool { return r.Kind == kind && r.Name == name })
		if i < 0 {
			i = len(all)
			units := signalbox.Units(configured, hold.Resource)
			all = append(all, api.Resource{Kind: kind, Name: name, Capacity: units, Free: units})
		}
		all[i].Free = max(0, all[i].Free-hold.N)
		if !who.Limited() || who.MayUse(hold.Agent) {
			all[i].Holders = append(all[i].Holders, holderOf(&hold, running))
		}
	}
	return slices.DeleteFunc(all, func(r api.Resource) bool { return r.Kind != "resource" && len(r.Holders) == 0 }), nil
}

func holderOf(h *signalbox.Hold, running []signalbox.Task) api.ResourceHolder {
	v := api.ResourceHolder{Agent: h.Agent, N: h.N}
	for _, t := range running {
		if t.Agent == h.Agent && t.Slot == h.Slot && t.Fence == h.Fence {
			v.QueueID, v.Since = t.ID, view.Time(t.DispatchedAt)
		}
	}
	return v
}
