package top

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const docsHead = `# The terminal view

<!-- Made from the view by: go test ./internal/top -update -->

` + "`signalbox top`" + ` shows in a terminal what the dashboard shows in a browser: both read the same live stream. It needs 80 × 24
cells and makes do with fewer.

%s
Each agent has a lane: what runs, and below it, or beside it where there is room, what waits, in order and with its age.
Queues that no agent owns stand below. The first line with a sign says whether a person is needed, and what to do.

Why does a task not run? ` + "`w`" + ` says it, in the words of ` + "`signalbox why`" + `:

%s
The tool queues, who has their slots and who waits:

%s
## Keys

| key | |
|---|---|
%s
What cancels or submits asks first, and only ` + "`y`" + ` is a yes. A release asks for the agent's name.

## Old data

After 5 s without a word from the director the data is called old, with its age; ages stop to grow. After 15 s everything
is grey and nothing can be changed, not even what was asked before. The view tries again until the director is back.

Text of tasks and agents is shown as text: escape sequences are taken out, other control characters and those that turn
the text round are question marks. ` + "`NO_COLOR` and `--color never`" + ` leave the colours out; none says anything alone. Without a
terminal the view says so and ends with code 2: ` + "`signalbox status --json`" + ` is for programs.

## Try it

` + "`signalbox demo`" + ` needs nothing: it starts a director on this host alone, three demo agents, two tool queues and a gentle
stream of tasks. One task waits for capacity from the start. ` + "`w`" + ` in the demo's terminal wedges an agent; the view and the
dashboard then show the way out, ` + "`R`" + ` or ` + "`signalbox release`" + `. Kill the demo with ` + "`kill -9`" + ` and start it again: it says what it
recovered, and its agents have gone on meanwhile.
`

// TestDocs keeps docs/top.md equal to the view.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "top.md")
	screen := func(name string) string {
		r := newRig(t, 80, 24)
		frames[name](r)
		return "```\n" + strings.TrimRight(r.frame(), "\n") + "\n```\n"
	}
	var keys strings.Builder
	for _, k := range helpKeys {
		fmt.Fprintf(&keys, "| %s | %s |\n", k[0], k[1])
	}
	want := fmt.Sprintf(docsHead, screen("lanes"), screen("detail-why"), screen("capacity"), keys.String())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/top.md is not what the view shows: go test ./internal/top -update")
	}
}
