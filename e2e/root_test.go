package e2e_test

import (
	"os"
	"strings"
	"testing"
)

// Whoever may submit to an agent of root has all rights on the host: the
// agent's log says so. A demo agent runs no programs, and logs nothing about
// it.
func TestAnAgentOfRootSaysSo(t *testing.T) {
	const word = "this agent runs as root"
	b := newBox(t)
	director := b.director()
	shell := b.agent("shell", director.url, "--", "/bin/sh", "-c", "true")
	demo := b.agent("demo", director.url)
	if os.Geteuid() == 0 {
		shell.says(word)
	} else if strings.Contains(shell.err.text(), word) {
		t.Error("it warns for another user")
	}
	if strings.Contains(demo.err.text(), word) {
		t.Error("the demo agent warns")
	}
}
