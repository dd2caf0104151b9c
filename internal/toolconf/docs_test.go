package toolconf_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page returns docs/tools.md.
func page(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// example returns the example under a heading of the page.
func example(t testing.TB, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(page(t), "\n### "+heading+"\n")
	if !ok {
		t.Fatalf("docs/tools.md has no heading %s", heading)
	}
	_, text, _ = strings.Cut(text, "```")
	_, text, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, "```")
	return text
}

// TestDocsKeys checks that the tables of the page contain all keys that the
// readers suggest.
func TestDocsKeys(t *testing.T) {
	text := page(t)
	_, text, _ = strings.Cut(text, "\n## Keys\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, key := range []string{
		"concurrent", "max_wait", "maxWaitMs", "max_waiters", "maxWaiters", "rate", "n", "per", "burst", "argument", "caller", "session", "idle", "idleMs", "max_hold", "maxHoldMs",
		"type", "command", "args", "env", "cwd", "url", "headers", "toolsAllowed", "toolsDenied", "shared", "healthProbe", "requestTimeoutMs", "timeout",
		"timeoutMs", "queue", "toolQueues", "enabled", "disabled", "method", "description", "parametersSchema", "bodyTemplate",
		"spec", "baseUrl", "includeMethods", "tagFilter", "toolNamePrefix",
		"title", "cwdRoot", "cwdFrom", "inputSchema", "secrets", "async", "restart", "limits", "sandbox", "maxConcurrent", "maxParallelTasks",
		"memory", "cpus", "cpuTime", "processes", "fileSize", "openFiles", "output", "pending", "running", "mode", "kind", "read", "write", "network",
		"cwd_root", "cwd_from", "input_schema", "cpu_time", "file_size", "open_files",
	} {
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("%s is not in docs/tools.md", key)
		}
	}
}

// TestDocsSources checks that the source knows each key in the tables of the
// page.
func TestDocsSources(t *testing.T) {
	var src strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		src.Write(data)
	}
	_, text, _ := strings.Cut(page(t), "\n## Keys\n")
	text, _, _ = strings.Cut(text, "\n## ")
	key := regexp.MustCompile("`([a-zA-Z_]+)`")
	var unknown []string
	for _, line := range strings.Split(text, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range key.FindAllStringSubmatch(cells[1], -1) {
				if !strings.Contains(src.String(), `"`+m[1]+`"`) {
					unknown = append(unknown, m[1])
				}
			}
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		t.Errorf("docs/tools.md has keys that no reader knows: %s", strings.Join(unknown, ", "))
	}
}
