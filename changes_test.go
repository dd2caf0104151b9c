package signalbox_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// The changes that an agent reports are bounded and printable, whatever it sends.
func TestChangesAreSanitized(t *testing.T) {
	hash := strings.Repeat("0a", 20)
	files := make([]signalbox.ChangedFile, signalbox.MaxChangedFiles+5)
	files[0] = signalbox.ChangedFile{Path: "a\x1b[2J\n\u202eb\xff", From: strings.Repeat("ä", 5000), Status: "exploded", Insertions: -1, Deletions: 1 << 62}
	c := signalbox.Changes{
		Workspace: "cellar", Dir: "/src\x00", Branch: "x\ry", Base: hash, Head: "HEAD; rm", Commits: -3, FilesChanged: -1, Insertions: -2, Deletions: 1 << 62,
		Files: files, Patch: strings.Repeat("x", signalbox.MaxPatch+1), PatchBytes: -5,
	}
	c.Sanitize()
	f := c.Files[0]
	if f.Path != "a\uFFFD[2J\uFFFD\uFFFDb\uFFFD" || len(f.From) > 4096 || f.Status != signalbox.FileModified || f.Insertions != 0 || f.Deletions != 1<<53 {
		t.Errorf("file: %+v", f)
	}
	if c.Workspace != "folder" || c.Dir != "/src\uFFFD" || c.Branch != "x\uFFFDy" || c.Base != hash || c.Head != "" {
		t.Errorf("texts: %+v", c.Summary())
	}
	if c.Commits != 0 || c.FilesChanged != signalbox.MaxChangedFiles || len(c.Files) != signalbox.MaxChangedFiles || c.Insertions != 0 || c.Deletions != 1<<53 {
		t.Errorf("figures: %+v", c.Summary())
	}
	if c.Patch != "" || c.PatchBytes != signalbox.MaxPatch+1 || c.Cut() == "" {
		t.Errorf("a patch of %d bytes, of %d", len(c.Patch), c.PatchBytes)
	}
	again := c
	again.Sanitize()
	if again.Summary().Dir != c.Dir || again.PatchBytes != c.PatchBytes || again.FilesChanged != c.FilesChanged {
		t.Errorf("not the same the second time: %+v", again.Summary())
	}
}

// A patch without a reported size counts as whole, and so does an empty patch.
func TestAPatchIsWholeOrCut(t *testing.T) {
	for _, one := range []struct {
		patch string
		bytes int64
		whole bool
	}{{"", 0, true}, {"abc", 0, true}, {"abc", 3, true}, {"abc", 4, false}, {"", 4, false}, {"a\xff", 2, false}, {"a\xff\xff\xff", 4, false}} {
		c := signalbox.Changes{Patch: one.patch, PatchBytes: one.bytes}
		c.Sanitize()
		if (c.Cut() == "") != one.whole {
			t.Errorf("%q of %d bytes: %q", one.patch, one.bytes, c.Cut())
		}
	}
}
