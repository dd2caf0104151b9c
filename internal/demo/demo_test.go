package demo

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/serve"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDemoErrands checks that the demo's tasks can run: they name the demo's own agents and
// tools, and take no longer than the tools allow.
func TestDemoErrands(t *testing.T) {
	have, err := tools(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range have.Commands {
		known[c.Name] = true
		if _, ok := have.Queues[c.Queue]; !ok || c.Queue == "default" {
			t.Errorf("%s stands behind no queue of the demo: %q", c.Name, c.Queue)
		}
	}
	call := regexp.MustCompile(`call (\S+) for (\S+)`)
	for _, e := range slices.Concat(opening, errands) {
		if e.agent != "" && !slices.Contains(agents, e.agent) {
			t.Errorf("%s: there is no agent %s", e.text, e.agent)
		}
		for _, m := range call.FindAllStringSubmatch(e.does, -1) {
			if long, err := time.ParseDuration(m[2]); err != nil || long > 30*time.Second || !known[m[1]] {
				t.Errorf("%s: %s", e.text, m[0])
			}
		}
	}
}

// TestDemoFeedFollowsItsSeed checks that the seed determines the order of the tasks, and that
// each round has every errand once.
func TestDemoFeedFollowsItsSeed(t *testing.T) {
	round := func(seed uint64) (texts []string) {
		f := newFeed(nil, rand.New(rand.NewPCG(seed, 1)), time.Second)
		for range 2 * len(errands) {
			texts = append(texts, f.next().text)
		}
		return texts
	}
	first := round(1)
	if !slices.Equal(first, round(1)) {
		t.Error("the same seed made another demo")
	}
	if slices.Equal(first, round(2)) || slices.Equal(first[:len(errands)], first[len(errands):]) {
		t.Error("the order is always the same")
	}
	if once := slices.Sorted(slices.Values(first[:len(errands)])); len(slices.Compact(once)) != len(errands) {
		t.Errorf("a round has an errand twice: %q", once)
	}
}

// TestDemoFolderIsOurs checks what is refused as the demo's folder, and that an existing folder
// is closed to other users.
func TestDemoFolderIsOurs(t *testing.T) {
	dir := t.TempDir()
	open, file, link := filepath.Join(dir, "open"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	for _, err := range []error{os.Mkdir(open, 0o755), os.WriteFile(file, nil, 0o600), os.Symlink(open, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{file, link} {
		if err := ownFolder(path); err == nil || !strings.Contains(err.Error(), "set TMPDIR to another folder") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := ownFolder(open); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(open); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestDemoIsOneAtATime checks that a folder in use is refused, and that the error says who has it.
func TestDemoIsOneAtATime(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	first, err := openFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.WriteJSON(first.file(), place{PID: 4711, URL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(); err == nil || err.Error() != "a demo runs already, at http://127.0.0.1:1 (pid 4711)" {
		t.Errorf("a second one: %v", err)
	}
	if err := first.close(true); err != nil {
		t.Fatal(err)
	}
	second, err := openFolder()
	if err != nil || second.past.PID != 4711 {
		t.Fatalf("after the first: %+v, %v", second, err)
	}
	if err := second.close(false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(second.path); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}
