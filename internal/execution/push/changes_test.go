package push_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// An agent's report of its changes is stored with the result, and the rest of the patch is read from the
// agent.
func TestChangesAreStoredWithTheResult(t *testing.T) {
	t.Parallel()
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a"})
	h.start()
	patch := "diff --git a/x b/x\n" + strings.Repeat("+<line>\n", 100_000)
	id := h.submit(engine.NewTask{})
	a.Finish(a.AwaitStart(1).TaskID, End{Patch: patch, Changes: &api.Changes{
		Workspace: "worktree", Branch: "signalbox/1", Base: strings.Repeat("a", 40), Head: "no hash", FilesChanged: 3, Insertions: 2, Deletions: -2,
		Files: []api.ChangedFile{{Path: "x\x1b", Status: "added", Insertions: 2}}, Patch: patch[:200_000], PatchBytes: int64(len(patch)),
	}})
	task := h.untilState(id, signalbox.Completed)
	r, err := h.engine.Read().Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Changes
	if c == nil || c.Branch != "signalbox/1" || c.Head != "" || c.Deletions != 0 || c.Files[0].Path != "x\uFFFD" || c.Patch != patch[:200_000] || c.Cut() == "" {
		t.Fatalf("stored: %+v", c.Summary())
	}
	size := int64(len(patch))
	read := func() (string, error) {
		body, err := h.d.Patch(t.Context(), &task, size)
		if err != nil {
			return "", err
		}
		defer body.Close()
		text, err := io.ReadAll(body)
		return string(text), err
	}
	if got, err := read(); err != nil || got != patch {
		t.Errorf("the whole patch has %d bytes, want %d: %v", len(got), len(patch), err)
	}
	fails := func(what string, code signalbox.Code, step Step) {
		t.Helper()
		a.Script(Patch, step)
		if _, err := read(); signalbox.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
	fails("forgotten", signalbox.CodeNotFound, Say(http.StatusNotFound, api.AgentRefusal{Error: "not_found"}))
	fails("error", signalbox.CodeAgentDown, Nothing(http.StatusInternalServerError))
	fails("no content", signalbox.CodeAgentDown, Nothing(http.StatusNoContent))
	fails("another length", signalbox.CodeAgentDown, func(x *Exchange) { _, _ = x.W.Write([]byte("short")) })
	fails("a redirect", signalbox.CodeAgentDown, Redirect("http://127.0.0.1:1/"))
	fails("silence", signalbox.CodeAgentDown, Hang())
	stalls := func(x *Exchange) {
		x.W.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(x.W).Flush()
		<-x.R.Context().Done()
	}
	a.Script(Patch, stalls)
	if got, err := read(); err == nil {
		t.Errorf("a patch that stalls was read to its end: %q", got)
	}
	a.Down()
	if _, err := read(); signalbox.CodeOf(err) != signalbox.CodeAgentDown {
		t.Errorf("down: %v", err)
	}
	task.Agent = "removed"
	if _, err := read(); signalbox.CodeOf(err) != signalbox.CodeAgentDown {
		t.Errorf("removed: %v", err)
	}
}

// The largest possible answer of an agent is read: 1 MiB of output and 256 KiB of a patch, with all
// characters escaped.
func TestTheLargestResultIsRead(t *testing.T) {
	t.Parallel()
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a"})
	h.start()
	id := h.submit(engine.NewTask{})
	c := &api.Changes{Patch: strings.Repeat("<", api.MaxPatch), PatchBytes: api.MaxPatch}
	for range 1000 {
		c.Files = append(c.Files, api.ChangedFile{Path: strings.Repeat("<", 250), Status: "modified"})
	}
	a.Finish(a.AwaitStart(1).TaskID, End{Output: strings.Repeat("<", signalbox.OutputBytes), Changes: c})
	h.untilState(id, signalbox.Completed)
	r, err := h.engine.Read().Result(t.Context(), id)
	if err != nil || len(r.Output) != signalbox.OutputBytes || r.Changes == nil || r.Changes.Cut() != "" || len(r.Changes.Files) != 1000 {
		t.Errorf("%d bytes of output, %+v, %v", len(r.Output), r.Changes.Summary(), err)
	}
}
