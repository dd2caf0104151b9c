package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// TestTools has the ways by which files of tools are named, and that a flag is
// stronger than a variable and that than the file.
func TestTools(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.write(filepath.Join(w.dir, "sub", name+".json"), `{"mcpServers": {"`+name+`": {"command": "x"}}}`)
	}
	w.file("tools: [sub/a.json]\nmcpServers: {own: {command: x}}\n")
	names := func(c config.Config) string {
		var out []string
		for _, s := range c.Tools.Servers {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	if got := names(w.mustLoad("")); got != "a own" {
		t.Errorf("of the file: %s", got)
	}
	w.env["SIGNALBOX_TOOLS"] = "sub/b.json, " + filepath.Join(w.dir, "sub", "c.json")
	if got := names(w.mustLoad("")); got != "b c own" {
		t.Errorf("of the variable: %s", got)
	}
	if got := names(w.mustLoad("", flag("--tools", "tools", "sub/d.json"))); got != "d own" {
		t.Errorf("of the flag: %s", got)
	}
	w.env["SIGNALBOX_TOOLS"] = "sub/gone.json"
	_, err := w.load("")
	if want := "SIGNALBOX_TOOLS: tools: sub/gone.json: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c, err := config.Load(config.Sources{Dir: w.dir, NoTools: true, Env: func(n string) (string, bool) { v, ok := w.env[n]; return v, ok }})
	if err != nil || !c.Tools.Empty() {
		t.Errorf("without tools: %v %+v", err, c.Tools)
	}
}
