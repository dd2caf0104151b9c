package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
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
			d := newDirector(t)
			env.Defer(d.proxy.stop)
			env.Values["director"] = d
			env.Setenv("SIGNALBOX_DIRECTOR", d.URL)
			env.Setenv("SIGNALBOX_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("URL", d.URL)
			env.Setenv("ZEROS", strings.Repeat("A", 43)) // the secret half of each token
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": codeCmd, "director": directorCmd, "envsubst": envsubst},
	})
}

// codeCmd runs a program with the script's environment and checks its exit code:
// code 3 [<FILE] signalbox …
func codeCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := ts.Value("director").(*director)
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	in := strings.NewReader("")
	if name, given := strings.CutPrefix(args[1], "<"); given {
		in = strings.NewReader(ts.ReadFile(name))
		args = args[1:]
	}
	io := cli.IO{
		In: in, Out: ts.Stdout(), Err: ts.Stderr(), Dir: ts.MkAbs("."), Now: d.clock.Now,
		Env: func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" },
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got := cli.Main(ctx, args[2:], io, fakeRoles)
	setIDs(ts)
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// setIDs sets ID1, ID2 and so on to the ids of the tasks.
func setIDs(ts *testscript.TestScript) {
	d := ts.Value("director").(*director)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, id := range d.ids {
		ts.Setenv("ID"+strconv.Itoa(i+1), id)
	}
}

// directorCmd changes the director or the proxy in front of it, or checks what was sent.
func directorCmd(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value("director").(*director)
	defer setIDs(ts)
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		ts.Check(err)
		return n
	}
	switch args[0] {
	case "new": // [max=N] [token=X] [alone=true]: a new director with an empty store
		d.reset(func(o *apitest.Options) {
			for _, arg := range args[1:] {
				switch name, value, _ := strings.Cut(arg, "="); name {
				case "max":
					o.Engine.MaxSize = number(value)
				case "token":
					o.Config.Token = value
				case "alone":
					o.Config.ToolsOnly, d.alone = true, true
				}
			}
		})
	case "hashes": // sets HASH1 and so on to the hashes of the audit log
		var log api.AuditLog
		d.Do("GET", "/api/audit?limit=1000", "", apitest.Bearer(d.token)).Want(d.t, 200, &log)
		for _, row := range log.Rows {
			ts.Setenv(fmt.Sprintf("HASH%d", row.Seq), row.Hash)
		}
	case "close": // requires a token from here on
		d.close()
		ts.Setenv("SIGNALBOX_TOKEN", d.token)
	case "seed": // PROMPT...
		d.seed(args[1:]...)
	case "ran":
		d.ran(3*time.Minute, 2*time.Minute, time.Minute, time.Minute, time.Minute)
	case "occupy":
		d.occupy()
	case "work": // N
		d.work(number(args[1]))
	case "complete": // N OUTPUT
		d.complete(number(args[1]), args[2])
	case "spend": // N USD: the task reports these costs
		usd, err := strconv.ParseFloat(args[2], 64)
		ts.Check(err)
		d.spend(number(args[1]), usd)
	case "change": // N BYTES: the task changed files; this many bytes of the patch are kept
		d.change(number(args[1]), number(args[2]))
	case "judge": // N: the work failed its checks
		d.judge(number(args[1]))
	case "account": // AGENT [WINDOW=PERCENT...]: the agent uses the account with its name
		var windows []signalbox.AccountWindow
		for _, arg := range args[2:] {
			name, percent, _ := strings.Cut(arg, "=")
			windows = append(windows, signalbox.AccountWindow{Name: name, UsedPercent: float64(number(percent))})
		}
		d.ReportAccount(args[1], windows)
	case "park": // N SECONDS: the task meets the limit of its account, which resets after that time
		d.Park(d.work(number(args[1])), time.Duration(number(args[2]))*time.Second)
	case "gates": // resumes the parked tasks whose gates are open
		d.check(d.Engine.OpenGates(context.Background()))
	case "agent": // NAME
		d.addAgent(args[1])
	case "down": // FILE: coder is down, with the file's text as the reason
		d.Live.Set(engine.LiveAgent{Agent: d.addAgent("coder"), Message: strings.TrimSuffix(ts.ReadFile(args[1]), "\n")})
	case "trouble": // a tool server fails, and calls wait
		d.tools.trouble.Store(true)
	case "later": // SECONDS
		d.clock.Advance(time.Duration(number(args[1])) * time.Second)
	case "watch": // the next watcher sees two agents; one goes down, the other is removed
		d.reset()
		d.addAgent("other")
		d.seed("one")
		d.work(1)
		d.proxy.answer("live", nil)
	case "tamper": // changed, missing, short, anew
		d.tamper(args[1])
	case "schedule": // NAME LAST
		d.addSchedule(args[1], args[2])
	case "lose-reply": // ROUTE
		d.proxy.lose[args[1]] = 1
	case "pages": // N: rows on a page
		d.proxy.pageSize = args[1]
	case "refuse": // ROUTE STATUS CODE MESSAGE
		d.proxy.refuse(args[1], number(args[2]), api.Error{Error: args[3], Message: strings.Join(args[4:], " ")})
	case "answer": // ROUTE [FILE]: answers in place of the director; without a file ends that
		if len(args) == 2 {
			d.proxy.answer(args[1], nil)
			return
		}
		body := ts.ReadFile(args[2])
		d.proxy.answer(args[1], func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, 200, json.RawMessage(body)) })
	case "sent": // ROUTE PATH BODY [HEADER=VALUE...]: the last request
		list := append([]request{{}}, d.proxy.requests(args[1])...)
		last := list[len(list)-1]
		if got := last.path + " " + last.body; got != args[2]+" "+args[3] {
			ts.Fatalf("sent: %s", got)
		}
		for _, header := range args[4:] {
			if name, want, _ := strings.Cut(header, "="); last.header.Get(name) != want {
				ts.Fatalf("sent %s: %q", name, last.header.Get(name))
			}
		}
	case "submits": // number of submit requests, and of idempotency keys
		keys := map[string]bool{}
		list := d.proxy.requests("submit")
		for _, s := range list {
			keys[s.header.Get("Idempotency-Key")] = true
		}
		if got := fmt.Sprintf("%d %d", len(list), len(keys)); got != strings.Join(args[1:], " ") {
			ts.Fatalf("submits and keys: %s", got)
		}
	case "stop":
		d.proxy.stop()
	default:
		ts.Fatalf("the director cannot %s", args[0])
	}
}

// tamper changes the audit log in transit.
func (d *director) tamper(how string) {
	var before api.AuditLog // as it was written
	d.Do("GET", "/api/audit?limit=1000", "", apitest.Bearer(d.token)).Want(d.t, 200, &before)
	rows := before.Rows
	switch how {
	case "changed":
		rows[2].UserID = "eve"
	case "missing":
		rows = slices.Delete(rows, 2, 3)
	case "short":
		rows = rows[:4]
	case "anew":
		for i := 2; i < len(rows); i++ {
			row := signalbox.Audit(rows[i])
			row.UserID, row.Prev = "eve", rows[i-1].Hash
			row.Hash = row.Sum()
			rows[i] = api.AuditRow(row)
		}
	}
	head := rows[len(rows)-1]
	d.proxy.answer("auditHead", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, 200, api.AuditHead{Seq: head.Seq, Hash: head.Hash, At: &head.At})
	})
	d.proxy.answer("audit", func(w http.ResponseWriter, r *http.Request) {
		got := httptest.NewRecorder()
		d.Server.Handler().ServeHTTP(got, r)
		var page api.AuditLog
		if json.Unmarshal(got.Body.Bytes(), &page); got.Code != http.StatusOK {
			answerJSON(w, got.Code, json.RawMessage(got.Body.Bytes()))
			return
		}
		page.Rows = slices.DeleteFunc(slices.Clone(rows), func(r api.AuditRow) bool {
			return !slices.ContainsFunc(page.Rows, func(asked api.AuditRow) bool { return asked.Seq == r.Seq })
		})
		answerJSON(w, 200, page)
	})
}

// envsubst copies a file with its variables filled in.
func envsubst(ts *testscript.TestScript, _ bool, args []string) {
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
