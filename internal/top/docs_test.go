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
Lanes that work come first, then those in which something waits, with the queues that no agent owns among them, then idle
ones and those that are down. The first line with a sign says whether a person is needed, and what to do. The rule above a
list says where in it you are, and whether there is more above (↑) and below (↓).

From 140 columns on the selected task stands beside the list. Enter gives it the keys, Esc gives them back.

Why does a task not run? ` + "`w`" + ` says it, in the words of ` + "`signalbox why`" + `:

%s
The tool queues, who has their slots and who waits:

%s
Above them stand the accounts that have limits or are not open, with until when and what waits for them:

%s
## Keys

| key | |
|---|---|
%s
What cancels or retries asks first, and only ` + "`y`" + ` is a yes. A release asks for the agent's name. A new task asks for
the prompt and the agent, a chat for the message, a pause for its reason and duration: Enter goes to the next field, and
after the last one does it; Esc leaves it. A search of the tasks is such as ` + "`agent:coder state:failed since:2h \"billing\"`" + `.

Long lines of output are wrapped; ` + "`W`" + ` cuts them, and ← → move along them. With Shift most terminals mark text with the mouse.

## Old data

A connection that is closed is said at once, silence after 5 s, with the age of the data; ages stop to grow. After 15 s everything
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
	want := fmt.Sprintf(docsHead, screen("lanes"), screen("detail-why"), screen("capacity"), screen("accounts-chosen"), keys.String())
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
