package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/roles"
)

var fakeRoles = roles.Roles{
	Version: "1.2.3",
	Up: func(_ context.Context, c config.Config, o roles.Up) error {
		fmt.Fprintf(o.Out, "up addr=%s store=%s kinds=%q nil=%v slots=%d\n", c.Addr, c.Store, o.Kinds, o.Kinds == nil, c.Agent.Slots)
		return nil
	},
	Director: func(ctx context.Context, c config.Config, o roles.Director) error {
		fmt.Fprintf(o.Out, "director addr=%s grace=%s token=%q max=%d\n", c.Addr, c.Grace, c.Token, c.Queue.MaxSize)
		if c.Addr == "127.0.0.1:1" {
			return portTaken{}
		}
		return nil
	},
	Gateway: func(_ context.Context, c config.Config, o roles.Gateway) error {
		bridge := "none"
		if o.Bridge != nil {
			bridge = fmt.Sprintf("%s token=%q execution=%v", o.Bridge.URL, o.Bridge.Token, o.Bridge.Execution)
		}
		fmt.Fprintf(o.Out, "gateway addr=%s servers=%d stdio=%v bridge=%s\n", c.Addr, len(c.Tools.Servers), o.Stdio, bridge)
		return nil
	},
	Scheduler: func(_ context.Context, c config.Config, o roles.Scheduler) error {
		url, token, known, err := o.Director()
		fmt.Fprintf(o.Out, "scheduler addr=%s zone=%s token=%q jobs=%d log=%s director=%s %q known=%v %v\n", c.Scheduler.Addr, c.Scheduler.Timezone, c.Scheduler.Token, len(c.Jobs), c.Log.Level, url, token, known, err)
		return nil
	},
	Demo: func(_ context.Context, o roles.Demo) error {
		fmt.Fprintf(o.Out, "demo addr=%q keep=%v seed=%d pace=%s keys=%v\n", o.Addr, o.Keep, o.Seed, o.Pace, o.Keys != nil)
		return nil
	},
	Agent: func(_ context.Context, c config.Config, o roles.Agent) error {
		fmt.Fprintf(o.Out, "agent name=%q kind=%q slots=%d command=%q args=%q director=%s token=%q known=%v\n",
			c.Agent.Name, c.Agent.Kind, c.Agent.Slots, c.Agent.Command, c.Agent.Args, o.Director, o.Token, o.Known)
		return nil
	},
}

type portTaken struct{}

func (portTaken) Error() string { return "port 1 is taken" }
func (portTaken) Hint() string  { return "--addr takes another" }

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			f := newFake(t)
			env.Defer(f.Close)
			env.Values["fake"] = f
			env.Setenv("SIGNALBOX_DIRECTOR", f.URL)
			env.Setenv("SIGNALBOX_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("URL", f.URL)
			for n, row := range auditChain(5) {
				env.Setenv("HASH"+strconv.Itoa(n+1), row.Hash)
			}
			for n := 1; n <= 4; n++ {
				env.Setenv("ID"+strconv.Itoa(n), id(n))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": codeCmd, "fake": fakeCmd, "envsubst": envsubst},
	})
}

// codeCmd runs the program with the script's environment and checks its exit code:
// code 3 [<FILE] signalbox …
func codeCmd(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	in := strings.NewReader("")
	if name, given := strings.CutPrefix(args[1], "<"); given {
		in = strings.NewReader(ts.ReadFile(name))
		args = args[1:]
	}
	io := cli.IO{
		In: in, Out: ts.Stdout(), Err: ts.Stderr(), Dir: ts.MkAbs("."), Now: func() time.Time { return noon },
		Env: func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" },
	}
	if got := cli.Main(context.Background(), args[2:], io, fakeRoles); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// fakeCmd changes the fake director, or checks what it received.
func fakeCmd(ts *testscript.TestScript, neg bool, args []string) {
	f := ts.Value("fake").(*fake)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch args[0] {
	case "seed":
		for _, prompt := range args[1:] {
			f.add(prompt)
		}
	case "state": // N STATE
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		f.set(f.tasks[n-1], "test", args[2])
	case "schedule": // NAME LAST
		f.addSchedule(args[1], args[2])
	case "max":
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		f.max = n
	case "token":
		f.token = args[1]
	case "drop-reply":
		f.dropReplies = 1
	case "refuse": // ROUTE STATUS CODE MESSAGE
		status, err := strconv.Atoi(args[2])
		ts.Check(err)
		f.refuse[args[1]] = api.Error{Error: args[3], Message: strings.Join(args[4:], " "), RetryAfter: status}
	case "hostile":
		t := f.add("\x1b]0;owned\a\x1b[2Jrm\r\u202etxt")
		t.PromptPreview = t.Prompt
		f.agents[0].Message = "\x1b[31mred\n"
	case "submits": // how many requests, and how many keys
		keys := map[string]bool{}
		for _, s := range f.submits {
			keys[s.key] = true
		}
		n := len(f.submits)
		if got := fmt.Sprintf("%d %d", n, len(keys)); got != strings.Join(args[1:], " ") {
			ts.Fatalf("submits and keys: %s", got)
		}
	case "last-chat": // PATH EXECUTION PREFER BODY
		last := f.chats[len(f.chats)-1]
		body := any(last.chat)
		if strings.HasSuffix(last.path, "/task") {
			body = last.bypass
		}
		data, err := json.Marshal(body)
		ts.Check(err)
		if got := fmt.Sprintf("%s %s %s %s", last.path, last.execution, last.prefer, data); got != strings.Join(args[1:], " ") {
			ts.Fatalf("last chat: %s", got)
		}
	case "last-call": // TOOL EXECUTION BODY of the last call of a tool
		if got := f.calls[len(f.calls)-1]; got != strings.Join(args[1:], " ") {
			ts.Fatalf("last call: %s", got)
		}
	case "last-user":
		data, err := json.Marshal(f.users[len(f.users)-1])
		ts.Check(err)
		if string(data) != args[1] {
			ts.Fatalf("last user: %s", data)
		}
	case "tamper": // changed, missing, short, anew
		tamper(f, args[1])
	case "stop":
		f.mu.Unlock()
		f.Close()
		f.mu.Lock()
	default:
		ts.Fatalf("fake cannot %s", args[0])
	}
}

// tamper changes with the audit log.
func tamper(f *fake, how string) {
	switch how {
	case "changed":
		f.audit[2].UserID = "eve"
	case "missing":
		f.audit = append(f.audit[:2], f.audit[3:]...)
	case "short":
		f.audit = auditChain(4)
	case "anew":
		rows := auditChain(5)
		for i := 2; i < 5; i++ {
			row := signalbox.Audit(rows[i])
			row.UserID, row.Prev = "eve", rows[i-1].Hash
			row.Hash = row.Sum()
			rows[i] = api.AuditRow(row)
		}
		f.audit = rows
	}
}

// envsubst copies a file with its variables filled in.
func envsubst(ts *testscript.TestScript, _ bool, args []string) {
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
