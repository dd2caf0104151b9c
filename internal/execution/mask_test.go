package execution_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

func TestMaskFailsClosed(t *testing.T) {
	const said = "no access with hunter2-long"
	for name, c := range map[string]struct {
		claimed engine.Claimed
		want    string
	}{
		"no env":        {engine.Claimed{}, said},
		"env":           {engine.Claimed{Request: signalbox.Request{HadEnv: true}, Env: map[string]string{"P": "hunter2-long", "Q": "hunter2", "ONE": "1"}}, "no access with ***"},
		"env is erased": {engine.Claimed{Request: signalbox.Request{HadEnv: true}}, "withheld: the task had an env, whose values are erased here and may be quoted in what the agent said"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := execution.MaskOf(&c.claimed).Hide(said); got != c.want {
				t.Errorf("%q is kept as %q, want %q", said, got, c.want)
			}
			if got := execution.MaskOf(&c.claimed).Hide(""); got != "" {
				t.Errorf("nothing is kept as %q", got)
			}
		})
	}
}
