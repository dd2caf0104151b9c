package director

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Refusals are recorded so that people can see who tries what; a stranger must
// not be able to fill the log with them, which is never pruned. From an
// address block ten may come at once, then one in six seconds; of all a
// hundred, then one in a second. What was left out is counted in the next row.
const (
	allDenials       = 100
	allDenialsRefill = time.Second
)

type denials struct {
	from *badTokens

	mu   sync.Mutex
	all  bucket
	left int
}

func newDenials() denials { return denials{from: newBadTokens()} }

// take reports whether a refusal is to be recorded, and how many were left
// out before it.
func (n *denials) take(from netip.Prefix, now time.Time) (left int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.from.wait(from, now) > 0 || n.all.until.Sub(now) > (allDenials-1)*allDenialsRefill {
		n.left++
		return 0, false
	}
	n.from.note(from, now)
	if n.all.until.Before(now) {
		n.all.until = now
	}
	n.all.until = n.all.until.Add(allDenialsRefill)
	left, n.left = n.left, 0
	return left, true
}

// auditDenied records a 403. The caller is told 403 whether or not it could
// be recorded.
func (d *Director) auditDenied(r *http.Request, action string) {
	d.auditBounded(r, signalbox.Audit{
		EventType: "access", Action: action, AgentName: deniedAgent(r), Resource: clip(r.Method + " " + r.URL.Path), Result: auditDenied, Severity: severityWarning,
	}, nil)
}

// deniedAgent is the agent that a request names, if that could be one.
func deniedAgent(r *http.Request) string {
	if name := r.PathValue("name"); signalbox.ValidName(name) {
		return name
	}
	return ""
}

// auditBounded records what strangers can bring about.
func (d *Director) auditBounded(r *http.Request, row signalbox.Audit, more map[string]any) {
	left, ok := d.denials.take(identity.AddrBlock(callerFrom(r).addr), time.Now())
	if !ok {
		return
	}
	if more == nil {
		more = map[string]any{}
	}
	if left > 0 {
		more["left_out"] = left
	}
	if len(more) > 0 {
		row.Details = details(more)
	}
	if err := d.audit(r, row); err != nil {
		d.log.Error("a refusal was not recorded", "error", err)
	}
}
