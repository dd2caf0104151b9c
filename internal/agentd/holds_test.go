package agentd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// The environment of a run and of its checks has the resources that the run holds;
// no other environment does.
func TestARunHasWhatItHolds(t *testing.T) {
	cfg := config(t, "command")
	cfg.Runner.Command = []string{"/bin/sh", "-c", "echo $PORT $SIGNALBOX_RESOURCE_STAGING_DB"}
	a := start(t, cfg)
	holds := []api.AgentHold{
		{Resource: "port", N: 2, Values: []string{"3001", "3002"}, Env: "PORT"}, {Resource: "staging-db", N: 1, Env: "SIGNALBOX_RESOURCE_STAGING_DB"},
	}
	check := api.TaskCheck{Name: "env", Run: `test "$PORT $SIGNALBOX_RESOURCE_STAGING_DB" = "3001,3002 1"`}
	s := a.end(a.submit(api.AgentTask{Prompt: "x", Holds: holds, Checks: []api.TaskCheck{check}}).TaskID)
	if s.State != "completed" || s.Output != "3001,3002 1\n" || s.Checks == nil || s.Checks.State != api.CheckPassed {
		t.Errorf("got %q, %+v, %+v", s.Output, s.Error, s.Checks)
	}
	if s := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID); s.Output != "\n" {
		t.Errorf("a run without resources has %q", s.Output)
	}
	for _, env := range []string{"PATH", "LD_PRELOAD", "SIGNALBOX_TOKEN", "ANTHROPIC_BASE_URL", "a b", ""} {
		a.refused(api.AgentTask{Prompt: "x", Holds: []api.AgentHold{{Resource: "port", N: 1, Values: []string{"v"}, Env: env}}}, 400, "validation_error")
	}
	a.refused(api.AgentTask{Prompt: "x", Holds: []api.AgentHold{{Resource: "port", N: 1, Values: []string{"a\x00b"}, Env: "SIGNALBOX_RESOURCE_PORT"}}}, 400, "validation_error")
}

// All paths of a folder give the same ID, and no other folder has it.
func TestAFolderIsTheSameByAllItsPaths(t *testing.T) {
	cfg := config(t, "command")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(cfg.WorkDir, link); err != nil {
		t.Skip(err)
	}
	ids := map[string]string{}
	for name, dir := range map[string]string{"folder": cfg.WorkDir, "link": link, "other": t.TempDir()} {
		c := config(t, "command")
		c.Runner.Command, c.WorkDir, c.ProjectRoots = []string{"true"}, dir, nil
		ids[name] = start(t, c).daemon.Status().FolderID
	}
	if ids["folder"] == "" || ids["folder"] != ids["link"] || ids["folder"] == ids["other"] || strings.Contains(ids["folder"], "/") {
		t.Errorf("%v", ids)
	}
	several := config(t, "command")
	several.Runner.Command, several.Slots = []string{"true"}, 2 // further slots have folders of their own
	if id := start(t, several).daemon.Status().FolderID; id != "" {
		t.Errorf("an agent with two slots reports the folder %s", id)
	}
}
