package llm_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

func openStore(t *testing.T) (*llm.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "conversations")
	s, err := llm.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func TestStoreKeepsConversations(t *testing.T) {
	s, dir := openStore(t)
	talk := []llm.Message{
		{Role: llm.RoleUser, Text: "a line\nand <another> \u2028"},
		{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "x", Arguments: oddArguments}}},
		{Role: llm.RoleTool, ToolID: "a", ToolName: "x", Text: "yes", IsError: true},
	}
	// Names that a file system might confuse or that might leave the folder.
	names := []string{"nightly", "Nightly", "NIGHTLY", "../escape", "a/b", "a..b", "~x", "", strings.Repeat("n", 300), "größe"}
	for i, name := range names {
		if s.Exists(name) {
			t.Errorf("%q exists before it was saved", name)
		}
		mine := append(slices.Clone(talk), llm.Message{Role: llm.RoleAssistant, Text: strings.Repeat("!", i)})
		if err := s.Save(name, talk[:1]); err != nil {
			t.Fatal(err)
		}
		if err := s.Save(name, mine); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		got, err := s.Load(name)
		if d := cmp.Diff(append(slices.Clone(talk), llm.Message{Role: llm.RoleAssistant, Text: strings.Repeat("!", i)}), got); d != "" || err != nil || !s.Exists(name) {
			t.Errorf("%q: %v %s", name, err, d)
		}
	}
	files, _ := os.ReadDir(dir)
	if len(files) != len(names) {
		t.Errorf("%d files for %d sessions: %v", len(files), len(names), files)
	}
	for _, f := range files {
		if i, _ := f.Info(); i.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", f.Name(), i.Mode())
		}
	}
	if err := errors.Join(s.Remove("nightly"), s.Remove("nightly")); err != nil || s.Exists("nightly") {
		t.Errorf("removed: %v", err)
	}
	if got, err := s.Load("nightly"); got != nil || err != nil {
		t.Errorf("a session without a conversation: %v %v", got, err)
	}
}

func TestStoreSetsDamagedFilesAside(t *testing.T) {
	s, dir := openStore(t)
	path := filepath.Join(dir, "s.jsonl")
	save := func() []byte {
		if err := s.Save("s", []llm.Message{{Role: llm.RoleUser, Text: "one"}, {Role: llm.RoleAssistant, Text: "two"}}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := string(save())
	for name, damaged := range map[string]string{
		"empty":             "",
		"cut between lines": whole[:strings.Index(whole, "\n{\"role\":\"assistant\"")+1],
		"cut in a line":     whole[:len(whole)-8],
		"nonsense":          "\x00\x00\x00",
		"another format":    strings.Replace(whole, "conversation/1", "conversation/9", 1),
		"another session":   strings.Replace(whole, `"session":"s"`, `"session":"t"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := s.Load("s")
			var c *llm.CorruptError
			if !errors.As(err, &c) || got != nil || c.Session != "s" {
				t.Fatalf("%v %v", got, err)
			}
			contains(t, err.Error(), "damaged", "set aside as "+c.Path, "begins anew")
			if b, err := os.ReadFile(c.Path); err != nil || string(b) != damaged {
				t.Errorf("set aside: %q %v", b, err)
			}
			if got, err := s.Load("s"); got != nil || err != nil || s.Exists("s") {
				t.Errorf("afterwards: %v %v", got, err)
			}
		})
	}
}

// TestStoreReadsPlainFilesAlone: a pipe would never end, a huge file would
// not fit into memory.
func TestStoreReadsPlainFilesAlone(t *testing.T) {
	s, dir := openStore(t)
	for name, put := range map[string]func(path string) error{
		"pipe":   makePipe,
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"huge":   func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
	} {
		if err := put(filepath.Join(dir, name+".jsonl")); err != nil {
			t.Fatal(err)
		}
		var c *llm.CorruptError
		if _, err := s.Load(name); !errors.As(err, &c) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Save(name, []llm.Message{{Role: llm.RoleUser, Text: "anew"}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStoreFailsLoudly: a failed save is an error, and the old conversation
// is kept.
func TestStoreFailsLoudly(t *testing.T) {
	s, dir := openStore(t)
	if err := s.Save("s", []llm.Message{{Role: llm.RoleUser, Text: "one"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "s.jsonl.new"), 0o700); err != nil { // the draft would be written here
		t.Fatal(err)
	}
	if err := s.Save("s", nil); err == nil || !strings.Contains(err.Error(), `session "s" could not be saved`) {
		t.Errorf("saved: %v", err)
	}
	if got, err := s.Load("s"); len(got) != 1 || err != nil {
		t.Errorf("%v %v", got, err)
	}
	if _, err := llm.OpenStore(filepath.Join(dir, "s.jsonl", "below")); err == nil {
		t.Error("a folder below a file was opened")
	}
}
