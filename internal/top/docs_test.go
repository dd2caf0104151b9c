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

` + "`signalbox top`" + ` shows in a terminal what the dashboard shows in a browser: both read the same live stream. It is made
for 80 × 24 cells, but works with fewer.

%s
Each agent has a lane with its running tasks. The waiting tasks are below them, or beside them if there is room, in order and
with their ages. Lanes that run a task come first, then lanes with waiting tasks, including the queues that no agent owns, then
idle agents, then agents that are down. The first line with a sign says whether a person is needed, and what to do. The rule
above a list shows where in the list you are, and whether there is more above (↑) and below (↓).

With 140 columns or more the selected task is shown beside the list. Enter moves the keys to the task, Esc back to the list.

Why does a task not run? ` + "`w`" + ` shows what ` + "`signalbox why`" + ` prints:

%s
The tool queues, with the holders of their slots and the waiting calls:

%s
Above them are the accounts that have limits or are not open. They show until when they are closed and what waits for them:

%s
## Keys

| key | |
|---|---|
%s
Cancel and retry ask for confirmation; only ` + "`y`" + ` confirms. A release asks for the agent's name. A new task asks for
the prompt and the agent, a chat for the message, a pause for its reason and duration. Enter goes to the next field and
submits after the last one; Esc cancels. An example of a search: ` + "`agent:coder state:failed since:2h \"billing\"`" + `.

Long lines of output are wrapped; ` + "`W`" + ` cuts them, and ← → move along them. In most terminals Shift and the mouse select text.

## Old data

The view reports a closed connection at once, and a silent one after 5 s, with the age of the data; the ages of tasks stop.
After 15 s everything turns grey, and nothing can be changed, not even with a question that is open. The view tries to reconnect
until the director is back.

Text from tasks and agents is shown as text: escape sequences are removed, and other control characters and characters that
reorder text become question marks. ` + "`NO_COLOR` and `--color never`" + ` turn the colours off; no information is in a colour alone.
Without a terminal the view prints an error and ends with code 2: programs use ` + "`signalbox status --json`" + `.

## Try it

` + "`signalbox demo`" + ` needs nothing: it starts a director on this host alone, three demo agents, two tool queues and a slow
stream of tasks. One task waits for capacity from the start. ` + "`w`" + ` in the demo's terminal makes an agent hang; the view and the
dashboard then show what to do: ` + "`R`" + ` or ` + "`signalbox release`" + `. Kill the demo with ` + "`kill -9`" + ` and start it again: it says what it
recovered, and its agents have continued meanwhile.
`

// TestDocs checks that docs/top.md shows the view.
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
