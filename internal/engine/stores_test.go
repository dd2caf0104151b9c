package engine_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/stores"
)

// The suite runs on the memory store, and again on each other kind of store, in a process of its own
// (TestSuiteOnEveryStore). These variables select the store.
const (
	envStore = "SIGNALBOX_TEST_STORE" // to run on one by hand: SIGNALBOX_TEST_STORE=postgres go test ./internal/engine
	envRan   = "SIGNALBOX_TEST_RAN"   // the file in which tests that opened a store are recorded, with its kind
)

var ran struct {
	mu   sync.Mutex
	said []string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	if path := os.Getenv(envRan); path != "" && code == 0 {
		if err := os.WriteFile(path, []byte(strings.Join(ran.said, "\n")), 0o600); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// openStore opens a store of the kind that the suite runs on.
func openStore(t *testing.T) store.Store {
	t.Helper()
	s := stores.Open(t, cmp.Or(os.Getenv(envStore), stores.Kinds[0]))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !t.Skipped() {
			ran.mu.Lock()
			defer ran.mu.Unlock()
			ran.said = append(ran.said, s.Info().Kind+" "+t.Name())
		}
	})
	return s
}

// TestSuiteOnEveryStore runs all other tests once on memory, and those that opened a store once on each other
// kind.
func TestSuiteOnEveryStore(t *testing.T) {
	if os.Getenv(envStore) != "" {
		t.Skip("this is such a run")
	}
	want := suiteOn(t, stores.Kinds[0], "-test.skip=^TestSuiteOnEveryStore$|^TestManyAgentsThatWait$") // it has its own memory store
	if len(want) == 0 {
		t.Fatal("no test opened a store")
	}
	var top []string
	for _, name := range want {
		name, _, _ = strings.Cut(name, "/")
		top = append(top, name)
	}
	those := "-test.run=^(" + strings.Join(slices.Compact(top), "|") + ")$"
	for _, kind := range stores.Kinds[1:] {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			got := suiteOn(t, kind, those)
			t.Logf("%d tests had a store of the kind %s", len(got), kind)
			if !slices.Equal(got, want) {
				t.Errorf("%v had a store of the kind %s, want %v", got, kind, want)
			}
		})
	}
}

// suiteOn runs tests and returns the names of those that opened a store of the kind.
func suiteOn(t *testing.T, kind, which string) (names []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ran")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if end, limited := t.Deadline(); limited {
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, self, which)
	cmd.Env = append(os.Environ(), envStore+"="+kind, envRan+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(said)) {
		on, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if on != kind {
			t.Errorf("%s had a store of the kind %s", name, on)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
