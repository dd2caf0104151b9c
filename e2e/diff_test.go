package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// git runs git in a folder with its own configuration only, and returns the output.
func (b *box) git(dir, in string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command(onPath(b.t, "git"), append([]string{"-C", dir, "-c", "user.name=Test", "-c", "user.email=test@example.com"}, args...)...)
	cmd.Env = []string{"HOME=" + b.home, "PATH=/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1"}
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// The patch of signalbox diff turns a clean clone into what the run left, including text that is
// not UTF-8, a binary file, a renamed file, and more than the director keeps.
func TestDiffAppliesToACleanClone(t *testing.T) {
	b := newBox(t)
	b.withSystemPath()
	repo := filepath.Join(b.root, "repo")
	if err := os.MkdirAll(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	b.git(repo, "", "init", "-q", "-b", "main")
	b.file("repo/a.txt", "one\ntwo\n", 0o600)
	b.file("repo/old.txt", strings.Repeat("a line that stays\n", 20), 0o600)
	b.git(repo, "", "add", ".")
	b.git(repo, "", "commit", "-qm", "first")
	clone := func() string {
		dir := filepath.Join(t.TempDir(), "clone")
		b.git(b.root, "", "clone", "-q", repo, dir)
		return dir
	}
	clean, far := clone(), clone()
	script := b.file("work.sh", `#!/bin/sh
set -e
case "$1" in
fail) exit 1;;
small) echo three >> a.txt;;
*)
	git mv old.txt "a new name.txt"
	printf 'caf\351\n' > latin.txt
	printf '\000\001\002' > binary
	i=0; while [ $i -lt 40000 ]; do i=$((i+1)); echo "line $i of many"; done > long.txt
	ln -s a.txt link
	git -c user.name=Agent -c user.email=agent@example.com commit -qam "half of it";;
esac
echo done
`, 0o700)
	director := b.director("--addr", freePort(t))
	c := b.client(director.url)
	agent := b.agent("coder", director.url, "--workdir", repo, "--", "/bin/sh", script, "{prompt}")

	small := b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "small"}))
	if got := small.Result.Changes; got == nil || got.FilesChanged != 1 || got.Insertions != 1 || got.Branch != "main" || got.Patch != "" || got.Files[0].Path != "a.txt" {
		t.Fatalf("the task shows %+v", small.Result)
	}
	if text := b.want(0, "status", small.QueueID).out; !strings.Contains(text, "1 file (+1 −0) on branch main") {
		t.Errorf("status does not say what changed:\n%s", text)
	}
	first := b.want(0, "diff", small.QueueID)
	big := b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "big"}))
	second := b.want(0, "diff", big.QueueID)
	if first.err+second.err != "" || len(second.out) <= api.MaxPatch {
		t.Fatalf("the second patch has %d bytes; %s", len(second.out), first.err+second.err)
	}
	b.git(clean, first.out, "apply", "--index")
	b.git(clean, second.out, "apply", "--index")
	b.git(repo, "", "add", ".")
	if got, want := b.git(clean, "", "write-tree"), b.git(repo, "", "write-tree"); got != want {
		t.Errorf("the clone differs from what the runs have left:\n%s", b.git(clean, "", "diff", "--cached", "--stat"))
	}
	if got := parse[api.Diff](t, b.want(0, "diff", big.QueueID, "--json").out); got.FilesChanged != 5 || got.Commits != 1 || got.Cut == "" {
		t.Errorf("%d files, %d commits, cut %q", got.FilesChanged, got.Commits, got.Cut)
	}
	stat := b.want(0, "diff", "--stat", big.QueueID).out
	for _, want := range []string{"+40000 −0", "long.txt", "old.txt → a new name.txt", "binary", "5 files (+40002 −0) on branch main, 1 commit"} {
		if !strings.Contains(stat, want) {
			t.Errorf("--stat lacks %q:\n%s", want, stat)
		}
	}

	agent.kill() // its data is unreachable
	cut := b.cli("diff", big.QueueID)
	begin, _, latin := strings.Cut(cut.out, "diff --git a/latin.txt")
	if cut.code != 1 || !strings.Contains(cut.err, "this is not the whole patch") || !latin || !strings.HasPrefix(second.out, begin) || strings.Contains(cut.out, "long.txt") {
		t.Errorf("of an agent that is gone: code %d, %s\n%s", cut.code, cut.err, cut.out)
	}
	if got := b.want(0, "diff", small.QueueID); got.out != first.out {
		t.Errorf("the small patch is %q without the agent", got.out)
	}

	b.pulling("far", director.url, "--workdir", far, // as on another host: it pulls
		"--", "/bin/sh", script, "{prompt}")
	pulled := b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "small", Agent: "far"}))
	if got := b.want(0, "diff", pulled.QueueID).out; got != first.out {
		t.Errorf("of an agent that pulls:\n%s\nwant\n%s", got, first.out)
	}
	failed := b.end(c, b.submit(c, api.SubmitRequest{Prompt: "fail", Agent: "far"}))
	if got := b.want(0, "diff", failed.QueueID); failed.State != "failed" || got.out != "" {
		t.Errorf("a %s task that changed nothing has the patch %q", failed.State, got.out)
	}
	b.agent("talker", director.url)
	none := b.cli("diff", b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "sleep 1ms", Agent: "talker"})).QueueID)
	if none.code != 3 || !strings.Contains(none.err, "the changes of task") {
		t.Errorf("of a run outside a repository: %s", fmt.Sprint(none))
	}
}
