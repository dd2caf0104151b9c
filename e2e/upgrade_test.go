package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// The data folder of the previous release, whose directors were open: a waiting
// task, a pause, an agent that had registered without a token. Its owner
// continues without a flag and finds all of it; everybody else needs a token.
//
// testdata/data-of-2026-11-22.tar.gz was written by that release: signalbox
// director, an agent named coder, submit, pause, submit.
func TestUpgradeFromAnOpenRelease(t *testing.T) {
	b := newBox(t)
	archive, err := filepath.Abs(filepath.Join("testdata", "data-of-2026-11-22.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("tar", "xzf", archive, "-C", b.root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	d := b.director()
	b.closedTo(d.url)
	queue := parse[api.Queue](t, b.want(0, "status", "--json").out)
	if queue.Depth != 1 {
		t.Fatalf("%+v", queue)
	}
	if said := b.cli("status").out; !strings.Contains(said, "say goodbye") || !strings.Contains(said, "paused") {
		t.Errorf("%s", said)
	}
	b.agent("coder", d.url)
	b.want(0, "resume")
	c := b.client(d.url)
	id := queue.Tasks[0].QueueID
	b.completed(c, id)
	// An agent of the previous release, which sends no token, is told what to do.
	b.vars["SIGNALBOX_HOME"] = filepath.Join(b.root, "elsewhere")
	old := b.serve(b.agentLine("old", d.url, nil)...)
	old.says("signalbox tokens create old --agent old")
}
