package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/signalbox-ai/signalbox/client"
)

// gate is work that runs until the test lets it end: the program waits at a
// named pipe. Opening the pipe for writing succeeds only when the program has
// reached it, so open also proves that the program runs.
type gate struct {
	b    *box
	fifo string
	held *os.File
}

// gateScript is a program that prints its prompt, and waits at the gate if
// the prompt begins with the word gate.
const gateScript = `#!/bin/sh
case "$1" in
gate*) echo "at the gate"; read line <FIFO ;;
esac
echo "did $1"
`

// gated makes a gate and the command line of an agent whose tasks go through
// it.
func (b *box) gated() (*gate, []string) {
	g := b.newGate()
	script := b.file("gate.sh", strings.ReplaceAll(gateScript, "FIFO", g.fifo), 0o700)
	return g, []string{"--", "/bin/sh", script, "{prompt}"}
}

func (b *box) newGate() *gate {
	g := &gate{b: b, fifo: filepath.Join(b.root, "gate")}
	if err := syscall.Mkfifo(g.fifo, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return g
}

// fakeClaude puts a claude on PATH that prints what the real one does, and
// waits at the gate if the prompt begins with the word gate.
func (b *box) fakeClaude() *gate {
	g := b.newGate()
	b.file("bin/claude", strings.ReplaceAll(claudeScript, "FIFO", g.fifo), 0o700)
	return g
}

const claudeScript = `#!/bin/sh
case "$1" in
--version) echo "9.8.7 (Claude Code)"; exit 0 ;;
auth) echo '{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty","apiKeySource":"ANTHROPIC_API_KEY"}'; exit 0 ;;
esac
read prompt
echo '{"type":"system","subtype":"init","session_id":"11111111-2222-4333-8444-555555555555"}'
case "$prompt" in
gate*) read line <FIFO ;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"did '"$prompt"'","session_id":"11111111-2222-4333-8444-555555555555","usage":{"input_tokens":3,"output_tokens":4}}'
`

// arrived waits until a program is at the gate.
func (g *gate) arrived() {
	g.b.t.Helper()
	g.b.until("a program at the gate", func() bool {
		f, err := os.OpenFile(g.fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		g.held = f
		return err == nil
	})
	g.b.t.Cleanup(func() { g.held.Close() })
}

// open lets the program at the gate continue.
func (g *gate) open() {
	g.b.t.Helper()
	if _, err := g.held.WriteString("go\n"); err != nil {
		g.b.t.Fatal(err)
	}
	g.held.Close()
}

// holdWith submits a task that waits at the gate, and returns once it does
// and the director knows.
func (g *gate) holdWith(c *client.Client, name string) string {
	g.b.t.Helper()
	id := g.b.submit(c, prompt("gate "+name))
	g.arrived()
	g.b.until("the director knows that it runs", func() bool {
		task, err := c.Task(g.b.ctx(), id)
		return err == nil && task.State == "working"
	})
	return id
}
