//go:build unix

package agentd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// scriptedClaude is a config of kind claude whose CLI is a script. At its n-th start, from 1, it
// runs the shell commands act with n in $n, in its working folder, and prints what Claude Code
// prints. Its prompt and conversation are in the files n.prompt and n.session of the home.
func scriptedClaude(t *testing.T, act string) agentd.Config {
	t.Helper()
	cfg := config(t, "claude")
	cfg.Runner.Binary = filepath.Join(t.TempDir(), "claude")
	script := `#!/bin/sh
how= id=
while test $# -gt 0; do
	case "$1" in
	--resume | --session-id) how=$1 id=$2 ;;
	--help | --version) exit 0 ;;
	esac
	shift
done
n=$(($(ls "$HOME" | grep -c prompt) + 1))
cat >"$HOME/$n.prompt"
echo "$how $id" >"$HOME/$n.session"
mkdir -p "$HOME/.claude/projects/p"
touch "$HOME/.claude/projects/p/$id.jsonl"
echo '{"type":"system","subtype":"init","session_id":"'$id'"}'
echo '{"type":"assistant","session_id":"'$id'","message":{"id":"m'$n'","model":"a-model","content":[{"type":"tool_use","name":"Edit","input":{}}],"usage":{"input_tokens":100,"output_tokens":10}}}'
` + act + `
echo '{"type":"result","subtype":"success","is_error":false,"result":"done '$n'","session_id":"'$id'","total_cost_usd":0.25,"usage":{"input_tokens":100,"output_tokens":10}}'
`
	if err := os.WriteFile(cfg.Runner.Binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func home(t *testing.T, cfg agentd.Config, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cfg.Home, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// starts returns how often the scripted CLI was started.
func starts(t *testing.T, cfg agentd.Config) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cfg.Home, "*.prompt"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func commands(run ...string) []api.TaskCheck {
	var list []api.TaskCheck
	for i, c := range run {
		list = append(list, api.TaskCheck{Name: fmt.Sprintf("check-%d", i+1), Run: c})
	}
	return list
}

func TestACLIThatLiesIsAskedAgainUntilItsWorkPasses(t *testing.T) {
	for _, lies := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(lies), func(t *testing.T) {
			cfg := scriptedClaude(t, fmt.Sprintf(`if test $n -gt %d; then echo good >work.txt; else echo "bad $n" >work.txt; fi`, lies))
			cfg.Checks.Retries = 3
			a := start(t, cfg)
			s := a.end(a.submit(api.AgentTask{Prompt: "do it", QueueID: "queue-1", Fence: 1, Checks: commands("true", "cat work.txt; grep -q good work.txt")}).TaskID)
			if s.State != "completed" || s.Checks == nil || s.Checks.State != "passed" || s.Checks.Rounds != lies+1 || len(s.Checks.Results) != 2 {
				t.Fatalf("%s %+v %+v", s.State, s.Error, s.Checks)
			}
			if got := starts(t, cfg); got != lies+1 || s.Output != fmt.Sprintf("done %d", got) {
				t.Errorf("%d starts, answer %q", got, s.Output)
			}
			id := strings.Fields(home(t, cfg, "1.session"))[1]
			for n := 2; n <= lies+1; n++ {
				if got := home(t, cfg, fmt.Sprintf("%d.session", n)); got != "--resume "+id {
					t.Errorf("start %d: %q, want the conversation %s", n, got, id)
				}
				got := home(t, cfg, fmt.Sprintf("%d.prompt", n))
				if !strings.Contains(got, fmt.Sprintf("bad %d", n-1)) || !strings.Contains(got, "check-2") || !strings.Contains(got, "exit status 1") || strings.Contains(got, "check-1") {
					t.Errorf("start %d was asked %q", n, got)
				}
			}
			if s.TokenUsage == nil || s.TokenUsage.Input != int64(100*(lies+1)) || s.TokenUsage.Output != int64(10*(lies+1)) || s.CostUSD != 0.25*float64(lies+1) {
				t.Errorf("used %+v, %v", s.TokenUsage, s.CostUSD)
			}
			if s.ToolCount != int64(lies+1) {
				t.Errorf("%d uses of tools", s.ToolCount)
			}
			log := a.says(s.TaskID, "check check-2: passed")
			if got := strings.Count(log, "check check-2: failed, exit status 1"); got != lies {
				t.Errorf("the log has %d failures: %s", got, log)
			}
		})
	}
}

func TestWorkThatNeverPassesFailsAfterItsRetries(t *testing.T) {
	cfg := scriptedClaude(t, "")
	cfg.Checks = agentd.Checks{List: commands("echo still broken; exit 7"), Retries: 2}
	a := start(t, cfg)
	s := a.end(a.submit(api.AgentTask{Prompt: "do it"}).TaskID)
	wantError(t, s, "failed", "checks", "the work was checked 3 times, and does not pass: check-1 (exit status 7): still broken")
	if starts(t, cfg) != 3 || s.Checks == nil || s.Checks.State != "failed" || s.Checks.Rounds != 3 || *s.Checks.Results[0].ExitCode != 7 || s.Output != "done 3" {
		t.Errorf("%d starts, %+v", starts(t, cfg), s)
	}
	none := 0
	s = a.end(a.submit(api.AgentTask{Prompt: "do it", CheckRetries: &none}).TaskID)
	wantError(t, s, "failed", "checks", "checked once")
	if starts(t, cfg) != 4 {
		t.Errorf("%d starts", starts(t, cfg))
	}
	a.stop()
	if got := start(t, cfg).get(s.TaskID); got.Checks == nil || got.Checks.State != "failed" || got.Checks.Results[0].Output != "still broken\n" {
		t.Errorf("after a restart: %+v", got.Checks)
	}
}

func TestChecksOfARunThatFailedDoNotRun(t *testing.T) {
	cfg := repository(t)
	cfg.Checks.List = commands("touch checked")
	a := start(t, cfg)
	s, _ := a.run(api.AgentTask{Prompt: "exit 3"}, "failed")
	if _, err := os.Stat(filepath.Join(cfg.WorkDir, "checked")); err == nil || s.Checks != nil || s.Error.Type != "exit_nonzero" {
		t.Errorf("%+v %+v", s.Error, s.Checks)
	}
	s, _ = a.run(api.AgentTask{Prompt: "true"}, "completed") // also if nothing has changed
	if s.Checks == nil || s.Checks.State != "passed" {
		t.Errorf("%+v", s.Checks)
	}
}

func TestAKindWithoutConversationFailsAtOnce(t *testing.T) {
	cfg := repository(t)
	cfg.Checks = agentd.Checks{List: commands("exit 1"), Retries: 5}
	a := start(t, cfg)
	s, _ := a.run(api.AgentTask{Prompt: "echo x >> count"}, "failed")
	wantError(t, s, "failed", "checks", "no conversation that could go on")
	if b, err := os.ReadFile(filepath.Join(cfg.WorkDir, "count")); err != nil || string(b) != "x\n" || s.Checks.Rounds != 1 {
		t.Errorf("%q %v %+v", b, err, s.Checks)
	}
}

func TestUnavailableChecksDoNotFailTheWork(t *testing.T) {
	cfg := scriptedClaude(t, "")
	cfg.Checks = agentd.Checks{List: commands("no-such-program-at-all"), Retries: 2}
	a := start(t, cfg)
	s := a.end(a.submit(api.AgentTask{Prompt: "do it"}).TaskID)
	if s.State != "completed" || s.Checks == nil || s.Checks.State != "unavailable" || s.Checks.Results[0].State != "unavailable" || starts(t, cfg) != 1 {
		t.Errorf("%+v %+v", s, s.Checks)
	}
}

// TestOneTimeLimitForAllRounds: the check hangs in the second round.
func TestOneTimeLimitForAllRounds(t *testing.T) {
	cfg := scriptedClaude(t, "")
	cfg.Checks = agentd.Checks{List: commands(`test -e second && { echo $$ >shell; echo hangs; sleep 300; }; touch second; exit 1`), Retries: 2}
	a := start(t, cfg)
	s := a.end(a.submit(api.AgentTask{Prompt: "do it", TimeoutSeconds: 2}).TaskID)
	wantError(t, s, "failed", "timeout", "timeout of 2s")
	if starts(t, cfg) != 2 || s.DurationSeconds > 60 || s.Checks == nil || s.Checks.State == "passed" {
		t.Errorf("%d starts, %+v", starts(t, cfg), s.Checks)
	}
	gone(t, s.TaskID)
}

func TestCancelDuringACheckEndsIt(t *testing.T) {
	cfg := scriptedClaude(t, "")
	cfg.Checks = agentd.Checks{List: commands(`sh -c 'trap "" TERM; printf "%s-%s\n" it hangs; sleep 300'`, "touch next"), Retries: 2}
	a := start(t, cfg)
	id := a.submit(api.AgentTask{Prompt: "do it"}).TaskID
	a.says(id, "it-hangs")
	a.do("POST", "/task/"+id+"/cancel", nil, nil)
	s := a.end(id)
	if s.State != "cancelled" || s.Checks == nil || s.Checks.State == "passed" {
		t.Errorf("%s %+v", s.State, s.Checks)
	}
	if _, err := os.Stat(filepath.Join(cfg.WorkDir, "next")); err == nil {
		t.Error("the next check ran")
	}
	gone(t, id)
	a.idle()
}

func TestABudgetHoldsOverAllRounds(t *testing.T) {
	cfg := scriptedClaude(t, "")
	cfg.Checks = agentd.Checks{List: commands("exit 1"), Retries: 10}
	a := start(t, cfg)
	s := a.end(a.submit(api.AgentTask{Prompt: "do it", Budget: &api.Budget{Tokens: 250}}).TaskID)
	wantError(t, s, "failed", "budget", "330 of its budget of 250 tokens")
	if starts(t, cfg) != 3 || s.Checks == nil || s.Checks.Rounds != 3 {
		t.Errorf("%d starts, %+v", starts(t, cfg), s.Checks)
	}
}

// TestAParkedRoundGoesOn: the run reaches its provider's limit in the second
// round.
func TestAParkedRoundGoesOn(t *testing.T) {
	cfg := scriptedClaude(t, `if test $n = 2; then
	echo '{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|4102444800","session_id":"'$id'","api_error_status":429}'
	exit 1
fi
test $n -lt 4 || touch good`)
	cfg.Checks = agentd.Checks{List: commands("test -e good"), Retries: 2}
	a := start(t, cfg)
	s := a.end(a.submit(api.AgentTask{Prompt: "do it", QueueID: "queue-1", Fence: 1}).TaskID)
	wantError(t, s, "failed", "usage_limit", "")
	if s.Limit == nil || !s.Limit.Began || s.Checks == nil || s.Checks.Rounds != 1 {
		t.Fatalf("%+v %+v", s.Limit, s.Checks)
	}
	again := api.AgentTask{Prompt: "do it", QueueID: "queue-1", Fence: 2, SessionID: s.SessionID, Resume: &api.AgentResume{Began: true}}
	s = a.end(a.submit(again).TaskID)
	if s.State != "completed" || s.Checks.State != "passed" || s.Checks.Rounds != 3 || starts(t, cfg) != 4 {
		t.Errorf("%s %+v %+v", s.State, s.Error, s.Checks)
	}
	if got := home(t, cfg, "3.prompt"); !strings.Contains(got, "Go on where you left off") {
		t.Errorf("asked %q", got)
	}
}

func TestAnAgentThatIsKilledInACheckEndsItAtItsNextStart(t *testing.T) {
	cfg := scriptedClaude(t, "")
	cfg.Checks.List = commands(`sh -c 'trap "" TERM; printf "%s-%s\n" it hangs; sleep 300'`)
	a, cmd := process(t, cfg)
	id := a.submit(api.AgentTask{Prompt: "do it"}).TaskID
	a.says(id, "it-hangs")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(proc.Alive(proc.Ident{Mark: id})) == 0 {
		t.Fatal("the check did not outlive the daemon; the test proves nothing")
	}
	s := start(t, cfg).get(id)
	wantError(t, s, "failed", "interrupted", "restarted")
	gone(t, id)
}

func TestAWorktreeIsCheckedAndCommittedAfterTheLastRound(t *testing.T) {
	cfg := repository(t)
	claude := scriptedClaude(t, `test $n = 1 && echo wrong >a.txt || echo right >a.txt`)
	cfg.Kind, cfg.Runner, cfg.Workspace.Kind = "claude", claude.Runner, "worktree"
	cfg.Checks = agentd.Checks{List: commands("grep right a.txt"), Retries: 1}
	a := start(t, cfg)
	s, c := a.run(api.AgentTask{Prompt: "do it", QueueID: "queue-00abcdef", Fence: 1}, "completed")
	if s.Checks.Rounds != 2 || c.Commits != 1 || c.Insertions != 1 || !strings.Contains(c.Patch, "+right") {
		t.Errorf("%+v %+v", s.Checks, c)
	}
	if got := git(t, cfg, "show", "signalbox/00abcdef:a.txt"); got != "right" {
		t.Errorf("the branch has %q", got)
	}
	if got := git(t, cfg, "status", "--porcelain"); got != "" {
		t.Errorf("the user's folder has %q", got)
	}
}

func TestChecksOfTheRepositoryAreThoseOfBeforeTheRun(t *testing.T) {
	for _, kind := range []string{"folder", "worktree"} {
		t.Run(kind, func(t *testing.T) {
			cfg := repository(t)
			put(t, cfg, "checks", "grep -q right a.txt")
			git(t, cfg, "add", "-A")
			git(t, cfg, "commit", "-q", "-m", "checks")
			cfg.Workspace.Kind = kind
			cfg.Checks.Repository = func(top string) ([]api.TaskCheck, error) {
				b, err := os.ReadFile(filepath.Join(top, "checks"))
				return commands(string(b)), err
			}
			sub := cfg
			sub.WorkDir, sub.ProjectRoots = filepath.Join(cfg.WorkDir, "sub"), []string{cfg.WorkDir}
			a := start(t, sub) // checks run at the top, wherever the agent works
			s, _ := a.run(api.AgentTask{Prompt: "echo true > ../checks; echo wrong > ../a.txt"}, "failed")
			wantError(t, s, "failed", "checks", "check-1")
		})
	}
}

func TestARepositoryThatIsNotTrustedLeavesTheWorkUnchecked(t *testing.T) {
	cfg := repository(t)
	cfg.Checks.Repository = func(string) ([]api.TaskCheck, error) { return nil, errors.New("signalbox trust FILE") }
	a := start(t, cfg)
	s, _ := a.run(api.AgentTask{Prompt: "true"}, "completed")
	if s.Checks == nil || s.Checks.State != "unavailable" || s.Checks.Message != "signalbox trust FILE" || s.Checks.Rounds != 0 {
		t.Errorf("%+v", s.Checks)
	}
	a.says(s.TaskID, "this run is not checked: signalbox trust FILE")
	s = a.end(a.submit(api.AgentTask{Prompt: "true", Isolated: true}).TaskID)
	if s.State != "completed" || s.Checks != nil {
		t.Errorf("isolated: %+v", s)
	}
}

func TestChecksThatAreRefused(t *testing.T) {
	cfg := command(t, "echo")
	a := start(t, cfg)
	bad := func(list []api.TaskCheck, want string) {
		t.Helper()
		if ref := a.refused(api.AgentTask{Prompt: "x", Checks: list}, 400, "validation_error"); !strings.Contains(ref.Message, want) {
			t.Errorf("%+v: %s", list, ref.Message)
		}
	}
	bad([]api.TaskCheck{{Name: "", Run: "true"}}, "cannot be the name")
	bad([]api.TaskCheck{{Name: "../x", Run: "true"}}, "cannot be the name")
	bad([]api.TaskCheck{{Name: "a", Run: "true"}, {Name: "a", Run: "true"}}, "two checks a")
	bad([]api.TaskCheck{{Name: "a", Run: " \n"}}, "no command")
	bad([]api.TaskCheck{{Name: "a", Run: "a\x00b"}}, "NUL")
	bad([]api.TaskCheck{{Name: "a", Run: strings.Repeat("x", 5000)}}, "5000 bytes")
	bad([]api.TaskCheck{{Name: "a", Run: "true", TimeoutSeconds: -1}}, "timeout_seconds")
	bad([]api.TaskCheck{{Name: "a", Run: "true", TimeoutSeconds: 1 << 40}}, "timeout_seconds")
	bad(commands(strings.Split(strings.Repeat("true ", 21), " ")[:21]...), "21 entries")
	for _, n := range []int{-1, 11} {
		if ref := a.refused(api.AgentTask{Prompt: "x", CheckRetries: &n}, 400, "validation_error"); !strings.Contains(ref.Message, "0 to 10") {
			t.Errorf("%d: %s", n, ref.Message)
		}
	}
	if ref := a.refused(api.AgentTask{Prompt: "x", Director: "d", QueueID: "q", Fence: 1, Checks: commands("true")}, 400, "validation_error"); !strings.Contains(ref.Message, "agent.task_checks") {
		t.Errorf("a caller's: %s", ref.Message)
	}
	a.stop()
	cfg.Checks.From = signalbox.ChecksOfEveryone
	b := start(t, cfg)
	if s := b.end(b.submit(api.AgentTask{Prompt: "x", Director: "d", QueueID: "q", Fence: 1, Checks: commands("true")}).TaskID); s.Checks == nil || s.Checks.State != "passed" {
		t.Errorf("%+v", s)
	}
	inside := start(t, config(t, "demo"))
	if ref := inside.refused(api.AgentTask{Prompt: "x", Checks: commands("true")}, 400, "validation_error"); !strings.Contains(ref.Message, "no folder") {
		t.Errorf("inside: %s", ref.Message)
	}
	cfg.Checks = agentd.Checks{Retries: 11}
	if _, err := agentd.New(cfg); err == nil || !strings.Contains(err.Error(), "check_retries") {
		t.Errorf("%v", err)
	}
}

func TestNoTokenOfARunReachesItsChecks(t *testing.T) {
	cfg := command(t, "echo")
	cfg.Checks.List = commands("env; echo $TASK_OWN")
	a := start(t, cfg)
	s := a.end(a.submit(api.AgentTask{Prompt: "x", Env: map[string]string{"TASK_OWN": "mine"}, QueueID: "q", Fence: 1, RunToken: "the-token-of-the-run"}).TaskID)
	if out := s.Checks.Results[0].Output; strings.Contains(out, "the-token-of-the-run") || strings.Contains(out, "SECRET_OF_DAEMON") || !strings.Contains(out, "TASK_OWN=mine") {
		t.Errorf("%s", out)
	}
}
