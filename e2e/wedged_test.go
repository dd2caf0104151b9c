package e2e_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// TestWedgedRunIsEnded: of two runs longer than execution_ttl, the one that prints
// continues to its end, and the silent one is stopped although its agent responds;
// the next task gets its slot. The same with pulling agents.
func TestWedgedRunIsEnded(t *testing.T) {
	for name, pull := range map[string][]string{"pushed": nil, "pulled": {"--pull"}} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.vars["EXECUTION_TTL"] = "3"
			director := b.director()
			script := b.file("run.sh", "#!/bin/sh\ncase $1 in\n"+
				"slow) for n in 1 2 3 4 5 6 7 8 9 10; do echo $n; /bin/sleep 0.6; done ;;\n"+
				"wedged) echo begun; exec /bin/sleep 600 ;;\nesac\necho did $1\n", 0o700)
			b.agent("worker", director.url, append(pull, "--", "/bin/sh", script, "{prompt}")...)
			c := b.client(director.url)
			ids := map[string]string{}
			for _, prompt := range []string{"slow", "wedged", "next"} {
				ids[prompt] = b.submit(c, api.SubmitRequest{Prompt: prompt})
			}
			if task := b.completed(c, ids["slow"]); !strings.HasSuffix(task.Result.Output, "10\ndid slow\n") {
				t.Errorf("the slow one answered %q", task.Result.Output)
			}
			task := b.end(c, ids["wedged"])
			if task.State != "failed" || task.Reason != "stalled" || !strings.HasPrefix(task.Message, "no output for 3s: ") || !strings.Contains(task.Message, "execution_ttl") {
				t.Errorf("the wedged one ended as %s (%s): %s", task.State, task.Reason, task.Message)
			}
			b.completed(c, ids["next"])
		})
	}
}
