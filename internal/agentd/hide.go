package agentd

import (
	"io"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/mask"
)

// secrets are what must not stand in what a run prints, answers or is recorded
// with: others may read that.
func (r *run) secrets() []mask.Pattern { return mask.Patterns(nil, r.task.RunToken) }

// readable is what a CLI says, as it may stand in a message: on a terminal too.
func (r *run) readable(text string) string {
	return mask.Text(r.secrets(), runner.Plain(clean([]byte(text))))
}

// hiding is a writer with the secrets taken out of what comes in pieces. What
// may be the beginning of one is held back until more comes, or the end.
type hiding struct {
	to   io.Writer
	mask *mask.Masker
}

func (r *run) hiding(to io.Writer) *hiding { return &hiding{to: to, mask: mask.New(r.secrets())} }

func (h *hiding) Write(b []byte) (int, error) {
	if _, err := h.to.Write(h.mask.Feed(b, false)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// end writes what was held back.
func (h *hiding) end() { _, _ = h.to.Write(h.mask.End()) } // what a run's output goes to never fails
