package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// landingsMaxAge is after how long unchanged landings are read again: no event says that one was
// pruned.
const landingsMaxAge = 30 * time.Second

// landingState is the landings that need a person, as of the last refresh.
type landingState struct {
	stand  []signalbox.Task
	readAt time.Time // by the engine's clock
}

// readLandings reads which landings need a person, if that may have changed.
func (r *refresh) readLandings(changes *journalChanges, fresh bool) error {
	s := &r.landings
	if !fresh && !changes.incomplete && !changes.landings && (len(s.stand) == 0 || r.now.Sub(s.readAt) < landingsMaxAge) {
		return nil
	}
	open, err := r.cfg.Engine.Read().Landings(r.ctx)
	if err != nil {
		return err
	}
	s.stand, s.readAt = slices.DeleteFunc(open, func(t signalbox.Task) bool { return t.Landing.State != signalbox.LandingStands }), r.now
	return nil
}

// checkLandings adds a finding for each landing that needs a person.
func (r *refresh) checkLandings(c *checker) {
	for i := range r.landings.stand {
		t := &r.landings.stand[i]
		said, _, _ := strings.Cut(strings.TrimPrefix(t.Landing.String(), "it "), "\n")
		c.add(finding{agent: t.Agent, owner: t.Owner, Attention: api.Attention{
			Kind: "landing_stands", Level: levelWarning, Subject: t.ID, Text: httpio.Clip(strings.TrimRight(said, ". ")), TaskID: t.ID, Since: t.Landing.Since,
			Cure: fmt.Sprintf("signalbox land %s tries again, signalbox land %[1]s --drop gives up", t.ID),
		}})
	}
}
