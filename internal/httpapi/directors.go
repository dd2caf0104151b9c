package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// directorHandlers list the directors that share the store, and compare them.
type directorHandlers struct {
	peers   forward.Peers // nil: this is the only director
	engine  *engine.Engine
	version string
	started time.Time
}

// directors is GET /api/directors.
func (h *directorHandlers) directors(w http.ResponseWriter, r *http.Request) error {
	who := access.CallerOf(r).Who
	var out api.Directors
	var err error
	if h.peers == nil {
		out, err = h.onlyDirector(r.Context(), who)
	} else {
		out, err = h.allDirectors(r.Context(), who)
	}
	return httpio.AnswerOr(w, out, err)
}

// aloneInstance is the name of a director without others.
const aloneInstance = "local"

func (h *directorHandlers) onlyDirector(ctx context.Context, who signalbox.Principal) (api.Directors, error) {
	rows, err := h.engine.Read().Agents(ctx)
	if err != nil {
		return api.Directors{}, err
	}
	only := api.Director{Instance: aloneInstance, Version: h.version, StartedAt: h.started, Alive: true, This: true, Agents: []string{}}
	for _, a := range rows {
		if !signalbox.IsExecutor(a.Name) && who.MayUse(a.Name) {
			only.Agents = append(only.Agents, a.Name)
		}
	}
	slices.Sort(only.Agents)
	return api.Directors{Directors: []api.Director{only}}, nil
}

func (h *directorHandlers) allDirectors(ctx context.Context, who signalbox.Principal) (api.Directors, error) {
	read := h.engine.Read()
	rows, err := read.Directors(ctx)
	if err != nil {
		return api.Directors{}, err
	}
	holders, err := read.Holders(ctx)
	if err != nil {
		return api.Directors{}, err
	}
	now, self := h.engine.Now(), h.peers.Self().ID
	out := api.Directors{Directors: make([]api.Director, len(rows))}
	for i := range rows {
		row := &rows[i]
		v := api.Director{
			Instance: row.ID, URL: row.URL, Version: row.Version, StartedAt: row.StartedAt, Alive: row.Alive(now),
			LeaseExpires: view.Time(row.Expires), Draining: row.Draining, Agents: []string{}, This: row.ID == self,
		}
		for agent, holder := range holders {
			if holder == row.ID && v.Alive && who.MayUse(agent) {
				v.Agents = append(v.Agents, agent)
			}
		}
		slices.Sort(v.Agents)
		out.Directors[i] = v
	}
	slices.SortFunc(out.Directors, func(a, b api.Director) int { return cmp.Compare(a.Instance, b.Instance) })
	return out, nil
}

// living is the number of living directors, including this one.
func (h *directorHandlers) living() int {
	if h.peers == nil {
		return 1
	}
	n := len(h.peers.Others())
	if self := h.peers.Self(); self.Alive(h.engine.Now()) {
		n++
	}
	return n
}

// clockOff is the minimum clock difference to the store that is reported: the times in
// the director's log are off by it.
const clockOff = 2 * time.Second

// checkDirectors checks the directors that share the store.
func (h *directorHandlers) checkDirectors(ctx context.Context) []api.Check {
	const area = "directors"
	if h.peers == nil {
		return nil
	}
	rows, err := h.engine.Read().Directors(ctx)
	if err != nil {
		return nil // the check of the store reports it
	}
	now, self := h.engine.Now(), h.peers.Self()
	var out []api.Check
	var live []string
	for i := range rows {
		row := &rows[i]
		if row.Alive(now) {
			live = append(live, row.ID)
			out = append(out, h.compare(row, self)...)
			continue
		}
		out = append(out, warning(area, "start it again if you need it; it is removed from the list a day after its end",
			"director %s (%s) has been gone since %s, without leaving properly", row.ID, row.URL, row.Expires.UTC().Format(time.RFC3339)))
	}
	if !self.Alive(now) {
		out = append(out, failure(area, "check that it reaches the store; its log says what fails", "the lease of this director (%s) has expired: it dispatches nothing", self.ID))
	}
	if off := time.Since(now).Round(10 * time.Millisecond); off.Abs() >= clockOff {
		out = append(out, warning(area, "synchronize its clock; only the times in its log are off, because directors use the store's clock",
			"the clock of this director's host is %s off the store's", off))
	}
	return append([]api.Check{fine(area, "%s: %s; this is %s", livingWords(len(live)), strings.Join(live, ", "), self.ID)}, out...)
}

func livingWords(n int) string {
	if n == 1 {
		return "1 lives"
	}
	return fmt.Sprintf("%d live", n)
}

// compare checks what two directors must, or should, have in common.
func (h *directorHandlers) compare(row *store.Director, self store.Director) []api.Check {
	const area = "directors"
	switch {
	case row.ID == self.ID:
		return nil
	case row.Key != self.Key:
		return []api.Check{failure(area, "set the same SIGNALBOX_SECRET_KEY for all", "director %s has another secret key: neither can decrypt what the other has encrypted", row.ID)}
	case row.Version != self.Version:
		return []api.Check{warning(area, "complete the upgrade: only versions with the same minor number run side by side", "director %s runs version %s, and this one %s", row.ID, row.Version, self.Version)}
	case row.URL == "":
		return []api.Check{warning(area, "start it with --advertise", "director %s has no address: other directors cannot show what only it knows", row.ID)}
	}
	return nil
}
