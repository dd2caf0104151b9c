package e2e_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// landScript appends its prompt as a line to the file named there, and commits it, as a coding CLI
// does that is killed at any moment and run again. One of eight lines is followed by another
// commit, and one preceded by one. If its work conflicts, it keeps both lines.
const landScript = `#!/bin/sh
git() { command git -c user.name=Agent -c user.email=agent@example.com "$@"; }
dir=$(git rev-parse --git-dir)
rm -f "$dir/index.lock" # of a git that was killed here
case $1 in
Your\ work\ could\ not*)
	git merge --abort 2>/dev/null
	git reset -q --hard
	# What an attempt of this turn left that was killed while git wrote files.
	while [ "$(git log -1 --format='%(trailers:key=Signalbox-Task,valueonly)')" = "$SIGNALBOX_QUEUE_ID" ]; do git reset -q --hard HEAD^; done
	git merge -q main || {
		for file in $(git diff --name-only --diff-filter=U); do
			sed -i '/^[<=>]\{7\}/d' $file && sort -u -o $file $file # a line of both sides can be in both halves
		done
		git add -A && git commit -qm "Merge main"
	} ;;
stay*) sleep 300 ;;
*)
	sleep 0.2
	commit() { git add -A && { git diff --cached --quiet || git commit -qm "$1"; }; }
	line() { grep -qx "$1" "${1%%:*}" 2>/dev/null || echo "$1" >> "${1%%:*}"; }
	case $((${1##* } % 8)) in
	1) line "$1" && commit "$1" && echo "$1" > "note-${1##* }" && commit "Note on $1" ;;
	2) echo "$1" > "note-${1##* }" && commit "Note on $1" && line "$1" && commit "$1" ;;
	*) line "$1" && commit "$1" ;;
	esac ;;
esac || exit 1
git rev-parse HEAD >> MADE
`

// Tasks of three agents change the same lines of one repository, while agents and directors are
// killed at random. Each landing is on the branch exactly once, the checked content is what
// landed, work that has not landed still exists, and the user's checkout is unchanged.
func TestLandingOverKillsSQLite(t *testing.T) {
	landOverKills(t, newBox(t), 1)
}

// The same with two directors over one server.
func TestLandingOverKillsPostgres(t *testing.T) {
	soak.Only(t, "two directors that drive one landing")
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	b := newBox(t)
	b.vars["SIGNALBOX_STORE"], b.vars["SIGNALBOX_SECRET_KEY"] = server.Database(t), testKey
	landOverKills(t, b, 2)
}

func landOverKills(t *testing.T, b *box, directors int) {
	b.withSystemPath()
	shop := filepath.Join(b.root, "shop")
	if err := os.MkdirAll(shop, 0o700); err != nil {
		t.Fatal(err)
	}
	b.git(shop, "", "init", "-q", "-b", "main")
	b.file("shop/README.md", "# Shop\n", 0o600)
	b.git(shop, "", "add", "-A")
	b.git(shop, "", "commit", "-qm", "Begin")
	base := b.git(shop, "", "rev-parse", "main")
	b.git(shop, "", "checkout", "-qb", "mine")
	b.file("shop/README.md", "# My shop\n", 0o600)
	b.git(shop, "", "stash", "-q")
	b.file("shop/README.md", "# Our shop\n", 0o600)
	b.file("shop/staged.txt", "staged\n", 0o600)
	b.git(shop, "", "add", "staged.txt")
	before := b.checkout(shop)

	made, checked := filepath.Join(b.root, "made"), filepath.Join(b.root, "checked")
	script := b.file("work.sh", strings.ReplaceAll(landScript, "MADE", made), 0o700)
	config := b.file("signalbox.yaml", "landing: {rounds: 10}\n", 0o600)
	fleet := map[string]*process{}
	starts := map[string]func() *process{}
	url := func(name string) string { return fleet[name].url }
	for n := range directors {
		name := fmt.Sprint("director ", n)
		args := []string{"director", "--addr", freePort(t), "--config", config, "--instance", fmt.Sprint("d", n), "--data", filepath.Join(b.root, fmt.Sprint("director-", n))}
		starts[name] = func() *process { return b.serve(args...) }
		fleet[name] = starts[name]()
	}
	for n, slots := range []string{"3", "3", "2"} {
		name, of := string("abc"[n]), fmt.Sprint("director ", n%directors)
		args := []string{"--workdir", shop, "--workspace", "worktree", "--slots", slots}
		if name == "c" {
			args = append(args, "--pull")
		}
		args = append(args, "--", "/bin/sh", script, "{prompt}")
		starts[name] = func() *process { return b.agent(name, url(of), args...) }
		fleet[name] = starts[name]()
	}

	c := b.client(url("director 0"))
	tasks, kills := soak.Pick(8, 32), soak.Pick(6, 200)
	lines := map[string]string{} // by task
	submit := func(n int) string {
		file := fmt.Sprintf("pages-%d.txt", n%4)
		if n%8 == 1 || n%8 == 2 { // several commits, without a conflict that would merge them
			file = fmt.Sprintf("page-%d.txt", n)
		}
		line := fmt.Sprintf("%s: line %d", file, n)
		id := b.submit(c, api.SubmitRequest{
			Prompt: line, Kind: "command", Land: "main", LandMethod: []string{"rebase", "squash"}[n/4%2], OnLost: "requeue",
			Checks: []api.TaskCheck{{Name: "line", Run: fmt.Sprintf("grep -qx '%s' %s && git rev-parse 'HEAD^{tree}' >> %s", line, file, checked)}},
		})
		lines[id] = line
		return id
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		names := slices.Sorted(maps.Keys(starts))
		for range kills {
			time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond) // the random moment is the point
			name := names[rand.IntN(len(names))]
			fleet[name].kill()
			fleet[name] = starts[name]()
		}
	}()
	ended := map[string]api.Task{}
	interrupted := map[string]bool{"interrupted": true, "lost": true, "dispatch_failed": true}
	landed := 0
	for last := false; !last; {
		select {
		case <-killed:
			last = landed > 0
		default:
		}
		var ids []string
		for n := range tasks {
			ids = append(ids, submit(landed+n))
		}
		for n, id := range ids {
			for ended[id] = b.end(c, id); ended[id].State != "completed"; ended[id] = b.end(c, id) {
				if task := ended[id]; !interrupted[task.Reason] || task.Landing.State != "dropped" {
					t.Fatalf("%s is %s (%s: %s), and its landing %s", id, task.State, task.Reason, task.Message, task.Landing.State)
				}
				got, err := c.Retry(b.ctx(), id, api.RetryRequest{}, client.SubmitOptions{})
				if err != nil {
					t.Fatal(err)
				}
				lines[got.QueueID], id = lines[id], got.QueueID
				ids[n] = id
			}
		}
		for _, id := range ids {
			b.until(id+" to land", func() bool {
				task, err := c.Task(b.ctx(), id)
				if err != nil { // the director is being killed
					return false
				}
				if task.Landing.State == "stands" {
					t.Logf("%s: %s", id, task.Landing.Text)
					if _, err := c.Land(b.ctx(), id, api.LandRequest{Onto: "main"}); err != nil {
						t.Log(err)
					}
				}
				ended[id] = task
				return task.Landing.State == "landed"
			})
		}
		landed += tasks
	}

	// A cancelled landing does not happen, and what has landed does not run
	// again.
	stopped := b.submit(c, api.SubmitRequest{Prompt: "stay.txt: here", Kind: "command", Land: "main"})
	b.until("a commit of it", func() bool {
		return b.git(shop, "", "for-each-ref", "--contains", base, "refs/heads/signalbox/"+stopped[len(stopped)-8:]) != ""
	})
	if _, err := c.Cancel(b.ctx(), stopped); err != nil {
		t.Fatal(err)
	}
	if task := b.end(c, stopped); task.State != "cancelled" || task.Landing.State != "dropped" {
		t.Errorf("%s is %s, and its landing %s", stopped, task.State, task.Landing.State)
	}
	ended[stopped] = api.Task{State: "cancelled"}
	var refused *client.Error
	if _, err := c.Land(b.ctx(), stopped, api.LandRequest{Onto: "main"}); !errors.As(err, &refused) || refused.Code() != "conflict" {
		t.Errorf("a cancelled task can be landed: %v", err)
	}
	for id, task := range ended {
		if task.State != "completed" {
			continue
		}
		if _, err := c.Retry(b.ctx(), id, api.RetryRequest{}, client.SubmitOptions{}); !errors.As(err, &refused) || refused.Code() != "conflict" {
			t.Errorf("%s has landed, and is run again: %v", id, err)
		}
	}

	for _, p := range fleet { // so that no git of theirs runs
		p.stop()
	}
	passed := b.read(checked)
	times, several := map[string]int{}, 0
	tips := map[string]string{} // last commit, by task
	log := strings.Split(b.git(shop, "", "log", "--reverse", "--format=%H %T %(trailers:key=Signalbox-Task,valueonly,separator=)", base+"..main"), "\n")
	for i, line := range log {
		f := strings.Fields(line)
		if len(f) != 3 {
			t.Fatalf("a commit without a task: %q", line)
		}
		if i > 0 && strings.Fields(log[i-1])[2] == f[2] {
			times[f[2]]-- // one of several commits of a landing
			several++
		}
		times[f[2]]++
		tips[f[2]] = f[0]
		if !strings.Contains(passed, f[1]) {
			t.Errorf("the tree of %s was not checked", line)
		}
	}
	if several < landed/8 {
		t.Errorf("%d commits are more than one of a landing, not %d or more", several, landed/8)
	}
	t.Logf("%d tasks have landed in %d commits over %d kills, %d more were interrupted", landed, len(log), kills, len(ended)-landed-1)
	if merges := b.git(shop, "", "rev-list", "--merges", base+"..main"); merges != "" {
		t.Errorf("main's history is not linear: %s", merges)
	}
	for id, task := range ended {
		if task.State != "completed" {
			if times[id] != 0 {
				t.Errorf("%s is %s, and has landed", id, task.State)
			}
			continue
		}
		file := b.git(shop, "", "show", "main:"+strings.SplitN(lines[id], ":", 2)[0])
		if n := strings.Count("\n"+file+"\n", "\n"+lines[id]+"\n"); n != 1 || times[id] != 1 || task.Landing.Commit != tips[id] {
			t.Errorf("%s landed %d times, its line is there %d times; its landing says %s, and the log %s", id, times[id], n, task.Landing.Commit, tips[id])
		}
	}
	for id := range times {
		if _, known := ended[id]; !known { // a turn that resolves a conflict does not land itself
			t.Errorf("a task that must not land is in the log: %s", id)
		}
	}
	subjects := b.git(shop, "", "log", "--format=%s%n%b", base+"..main")
	for _, commit := range strings.Fields(b.read(made)) {
		if b.git(shop, "", "for-each-ref", "--contains", commit) != "" {
			continue
		}
		if subject := b.git(shop, "", "log", "-1", "--format=%s", commit); subject != "Merge main" && !strings.Contains(subjects, subject) {
			t.Errorf("%s (%s) is on no branch, and has not landed", commit, subject)
		}
	}
	if after := b.checkout(shop); after != before {
		t.Errorf("the user's checkout is\n%s\nand was\n%s", after, before)
	}
	b.git(shop, "", "fsck", "--no-progress")
	err := filepath.WalkDir(filepath.Join(shop, ".git"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".lock") {
			t.Errorf("a lock is left: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// checkout returns the state of a user's checkout: all files, the index, HEAD and the
// stash.
func (b *box) checkout(dir string) string {
	b.t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, dir)
		if err != nil || e.IsDir() || strings.HasPrefix(name, "/.git/") && name != "/.git/index" && name != "/.git/HEAD" {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %x\n", name, sha256.Sum256(text))
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all.String() + b.git(dir, "", "stash", "list")
}

// The real coding CLIs each change a file in a worktree of one repository
// concurrently, and their work lands on the branch that its user has checked out.
func TestRealCLIsLandTheirWork(t *testing.T) {
	kinds := cliKinds
	if !soak.On() { // a start of opencode takes seconds
		kinds = []string{"claude", "codex"}
	}
	b := newBox(t)
	models := b.withCLIs()
	b.git(b.work, "", "init", "-q", "-b", "main")
	b.git(b.work, "", "commit", "-q", "--allow-empty", "-m", "Begin")
	director := b.director()
	c := b.client(director.url)
	b.file("home/.claude/settings.json", `{"permissions": {"allow": ["Bash"]}}`, 0o600)
	mayWrite := map[string][]string{
		"codex": {"--permission-mode", "danger-full-access"}, "opencode": {"--permission-mode", "allow"},
	}
	for _, kind := range kinds {
		b.agent(kind, director.url, append([]string{"--kind", kind, "--workdir", b.work, "--workspace", "worktree"}, mayWrite[kind]...)...)
	}
	ids := map[string]string{}
	for _, kind := range kinds {
		models[kind].Use(model.Replies(
			model.Reply{Text: "I write it.", Tool: model.Shell("pwd > " + kind + ".txt")},
			model.Reply{Text: "It is written."},
		))
		ids[kind] = b.submit(c, api.SubmitRequest{Prompt: "write a file", Kind: kind, Land: "main", FastForward: true})
	}
	folders := map[string]bool{}
	for _, kind := range kinds {
		task := b.completed(c, ids[kind])
		b.until("what "+kind+" did to land", func() bool {
			var err error
			if task, err = c.Task(b.ctx(), ids[kind]); err != nil {
				t.Fatal(err)
			}
			if task.Landing.State == "stands" {
				t.Fatal(task.Landing.Text)
			}
			return task.Landing.State == "landed"
		})
		if by := b.git(b.work, "", "log", "-1", "--format=%(trailers:key=Signalbox-Task,valueonly,separator=)", task.Landing.Commit); by != ids[kind] {
			t.Errorf("%s: the commit is of %s", kind, by)
		}
		where := b.read(filepath.Join(b.work, kind+".txt"))
		if folders[where] || strings.TrimSpace(where) == b.work || !strings.Contains(where, "worktrees") {
			t.Errorf("%s worked in %s", kind, where)
		}
		folders[where] = true
	}
	if n := b.git(b.work, "", "rev-list", "--count", "main"); n != strconv.Itoa(1+len(kinds)) {
		t.Errorf("main has %s commits", n)
	}
	if left := b.git(b.work, "", "status", "--porcelain"); left != "" {
		t.Errorf("the user's checkout: %s", left)
	}
}
