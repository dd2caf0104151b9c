package invariant

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// loadPeers reads the holders before the directors, so that a director that joins in between is no finding.
func (v *view) loadPeers(ctx context.Context, r store.Reader) (err error) {
	if v.holders, err = r.Holders(ctx); err != nil {
		return err
	}
	v.directors, err = r.Directors(ctx)
	return err
}

// checkPeers: each director is listed once, and each holder of an agent is one of them.
func (v *view) checkPeers() {
	listed := map[string]bool{}
	for i, d := range v.directors {
		if i > 0 && v.directors[i-1].ID >= d.ID {
			v.wrong("directors: %s stands before %s", v.directors[i-1].ID, d.ID)
		}
		listed[d.ID] = true
	}
	for agent, holder := range v.holders {
		if !listed[holder] {
			v.wrong("agent %s is held by director %s, which is not there", agent, holder)
		}
	}
}
