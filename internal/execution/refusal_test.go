package execution_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// offerer records what it is told about its agent.
type offerer struct{ told []string }

func (o *offerer) RaiseFence(int64)      { o.told = append(o.told, "fence") }
func (o *offerer) Hold(why string)       { o.told = append(o.told, "hold: "+why) }
func (o *offerer) TurnedAway(why string) { o.told = append(o.told, "turned away: "+why) }
func (o *offerer) Healthy()              { o.told = append(o.told, "well") }
func (o *offerer) Failed(why string, sure bool) (bool, time.Duration) {
	if sure {
		why = "surely " + why
	}
	o.told = append(o.told, "failed: "+why)
	return false, 0
}

// TestRefusal is the table of what each answer means for the agent; its message is masked.
func TestRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		refusal execution.Refusal
		want    string
	}{
		"busy":            {execution.Refusal{Status: 409, AgentRefusal: api.AgentRefusal{Error: "agent_busy", Message: "no slot for secret"}}, "hold: agent answered 409: no slot for ***"},
		"stale":           {execution.Refusal{Status: 409, AgentRefusal: api.AgentRefusal{Error: "stale_fence", HighestFence: 7}}, "fence, turned away: agent answered 409: stale_fence"},
		"stale, by what?": {execution.Refusal{Status: 409, AgentRefusal: api.AgentRefusal{Error: "stale_fence"}}, "hold: agent answered 409: stale_fence"},
		"bad request":     {execution.Refusal{Status: 400, AgentRefusal: api.AgentRefusal{Message: "no model secret"}}, "well"},
		"wrong token":     {execution.Refusal{Status: 401}, "failed: surely agent answered 401: unauthorized"},
		"forbidden":       {execution.Refusal{Status: 403}, "well"},
		"broken":          {execution.Refusal{Status: 500, AgentRefusal: api.AgentRefusal{Message: "oops: secret"}}, "failed: agent answered 500: oops: ***"},
		"full disk":       {execution.Refusal{Status: 507}, "failed: surely agent answered 507: insufficient storage"},
		"storage":         {execution.Refusal{Status: 500, AgentRefusal: api.AgentRefusal{Error: "storage_error"}}, "failed: surely agent answered 500: storage_error"},
		"a redirect":      {execution.Refusal{Status: 302, AgentRefusal: api.AgentRefusal{Message: "found"}}, "failed: agent answered 302: a redirect, which is not followed: give the agent's own address"},
	} {
		t.Run(name, func(t *testing.T) {
			var o offerer
			c.refusal.Refused(&o, func(text string) string { return strings.ReplaceAll(text, "secret", "***") })
			if got := strings.Join(o.told, ", "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
