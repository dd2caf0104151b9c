package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// --workspace, --repo and --base set where a single task works. Impossible values are refused
// at once if the director knows, otherwise by the agent, as the end of the task.
func TestSubmitSaysWhereItWorks(t *testing.T) {
	b := newBox(t)
	b.withSystemPath()
	shop := filepath.Join(b.root, "shop")
	for _, dir := range []string{"shop/docs", "outside"} {
		if err := os.MkdirAll(filepath.Join(b.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.git(shop, "", "init", "-q", "-b", "main")
	b.file("shop/a.txt", "old\n", 0o600)
	b.file("shop/docs/d.txt", "docs\n", 0o600)
	b.git(shop, "", "add", "-A")
	b.git(shop, "", "commit", "-qm", "Begin")
	b.git(shop, "", "tag", "v1")
	b.file("shop/a.txt", "new\n", 0o600)
	b.git(shop, "", "commit", "-qam", "Go on")
	bare := filepath.Join(b.root, "shop.git")
	b.git(shop, "", "clone", "-q", "--bare", shop, bare)
	b.git(shop, "", "remote", "add", "origin", bare)
	b.git(shop, "", "update-ref", "refs/heads/odd&name", "v1")
	if err := os.Symlink(filepath.Join(b.root, "outside"), filepath.Join(shop, "link")); err != nil {
		t.Fatal(err)
	}
	director := b.director("--addr", freePort(t))
	b.agent("coder", director.url, "--workdir", shop, "--", "/bin/sh", "-c", `eval "$0"`, "{prompt}")
	for _, c := range []struct {
		flags string // separated by spaces; § is the folder of the test
		code  int
		says  string // the output of the task, or the error
	}{
		{"", 0, "new on main"},
		{"--workspace folder", 0, "new on main"},
		{"--workspace worktree", 0, "new on signalbox/"},
		{"--workspace worktree --base v1", 0, "old on signalbox/"},
		{"--workspace worktree --base odd&name", 0, "old on signalbox/"},
		{"--base=v1 --workspace=worktree --base=main", 0, "new on signalbox/"}, // the last one counts
		{"--workspace worktree --repo docs", 0, "docs on signalbox/"},
		{"--workspace clone --repo §/shop.git", 0, "new on signalbox/"}, // the origin of its folder
		{"--workspace clone --repo §/shop.git --base v1", 0, "old on signalbox/"},

		{"--workspace branch", 2, `invalid argument "branch" for "--workspace" flag: want folder, worktree or clone`},
		{"--workspace=", 2, `invalid argument "" for "--workspace" flag`},
		{"--repo docs", 2, "repo needs workspace"},
		{"--workspace folder --base main", 2, "repo and base need a workspace that is worktree or clone"},
		{"--workspace worktree --base -1", 2, `base is "-1": the name of a branch or tag, or a commit`},
		{"--workspace worktree --base main..v1", 2, "the name of a branch or tag, or a commit"},
		{"--workspace worktree --base " + strings.Repeat("x", 300), 2, "the name of a branch or tag, or a commit"},
		{"--workspace worktree --repo " + strings.Repeat("x", 2000), 2, "a path of at most 1024 bytes"},
		{"--workspace clone --repo ext::sh", 2, "of a clone it is the address of a git repository"},
		{"--workspace clone --repo --upload-pack=touch", 2, "of a clone it is the address of a git repository"},
		{"--workspace clone --repo https://u:secret@host/x.git", 2, "without a password"},
		{"--workspace clone --repo file://§/shop.git", 2, "of a clone it is the address of a git repository"},

		{"--base main", 10, "base needs a workspace that is worktree or clone: this agent works in its folder"},
		{"--workspace worktree --base gone", 10, `has no commit "gone", from which the worktree is to be made`},
		{"--workspace worktree --repo gone", 10, "there is no folder gone that this agent may use"},
		{"--workspace worktree --repo ..", 10, "there is no folder .. that this agent may use"},
		{"--workspace worktree --repo §/outside", 10, "that this agent may use"},
		{"--workspace worktree --repo link", 10, "that this agent may use"},
		{"--workspace clone", 10, "neither repo nor workspace.repo of this agent says of what"},
		{"--workspace clone --repo §/outside", 10, "this agent may not clone"},
		{"--workspace clone --repo §/shop.git --base gone", 10, `has no branch, tag or commit "gone"`},
	} {
		args := []string{"submit", "--wait", `cat a.txt d.txt 2>/dev/null; echo "on $(git branch --show-current)"`, "--director", director.url}
		args = append(args, strings.Fields(strings.ReplaceAll(c.flags, "§", b.root))...)
		got := b.cli(args...)
		said := got.err
		if c.code == 0 {
			said = strings.Join(strings.Fields(got.out), " ")
		}
		if got.code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%.80s: exit %d, %q %q: not %d, %q", c.flags, got.code, got.out, got.err, c.code, c.says)
		}
	}
	if got := b.git(shop, "", "status", "--porcelain"); got != "?? link" {
		t.Errorf("the checkout is %q", got)
	}
}
