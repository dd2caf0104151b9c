package signalbox_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

func TestTheLineThatSaysWhyAProgramFailed(t *testing.T) {
	for _, c := range []struct {
		why     string
		printed []string
	}{
		{"jobs.errors.ChargeError: card_declined (code 402)", []string{"start", "Traceback (most recent call last):", `  File "/srv/app/jobs/billing.py", line 481, in run`, "    self.charge(order)", "jobs.errors.ChargeError: card_declined (code 402)"}},
		{"KeyboardInterrupt", []string{"Traceback (most recent call last):", `  File "a.py", line 1, in <module>`, "KeyboardInterrupt", "bye"}},
		{"AssertionError", []string{"Traceback (most recent call last):", `  File "a.py", line 1, in <module>`, "AssertionError"}},
		{"panic: runtime error: index out of range [3] with length 3", []string{"panic: runtime error: index out of range [3] with length 3", "", "goroutine 1 [running]:", "main.main()", "\t/tmp/a.go:5 +0x1d", "exit status 2"}},
		{"--- FAIL: TestTotal (0.00s)", []string{"=== RUN   TestTotal", "    total_test.go:9: got 3", "--- FAIL: TestTotal (0.00s)", "FAIL", "FAIL\texample.com/shop\t0.003s"}},
		{"./total.go:12:3: undefined: sum", []string{"# example.com/shop", "./total.go:12:3: undefined: sum"}},
		{"TypeError: Cannot read properties of undefined (reading 'id')", []string{"/srv/app/index.js:3", "    at run (/srv/app/index.js:3:9)", "TypeError: Cannot read properties of undefined (reading 'id')", "    at run (/srv/app/index.js:3:9)", "    at Module._compile (node:internal/modules/cjs/loader:1554:14)", "", "Node.js v22.1.0"}},
		{"Caused by: java.net.ConnectException: Connection refused", []string{`Exception in thread "main" java.lang.IllegalStateException: no stock`, "\tat shop.Main.main(Main.java:9)", "Caused by: java.net.ConnectException: Connection refused", "\t... 3 more"}},
		{"error[E0382]: borrow of moved value: `order`", []string{"error[E0382]: borrow of moved value: `order`", " --> src/main.rs:4:20", "error: could not compile `shop` (bin \"shop\") due to 1 previous error"}},
		{"index out of bounds: the len is 3 but the index is 7", []string{"thread 'main' panicked at src/main.rs:3:5:", "index out of bounds: the len is 3 but the index is 7", "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"}},
		{"./build.sh: line 3: mak: command not found", []string{"building", "./build.sh: line 3: mak: command not found"}},
		{"error: the disk is full", []string{"0 errors, 2 warnings", "error: the disk is full", "bye"}},
		{`npm ERR! Missing script: "biuld" failed: see above`, []string{"npm ERR! code ELIFECYCLE", `npm ERR! Missing script: "biuld" failed: see above`, "npm ERR! A complete log of this run can be found in: /home/dev/x.log"}},
		{"panic: the second", []string{"error: the first", "all well", "panic: the second", "bye"}},
		{"fatal: at the very end", []string{"panic: before", "fatal: at the very end"}},
		{"error: in red", []string{"\x1b[31merror\x1b[0m: in red\r"}},
		{"error: 100%", []string{"10%\r50%\rerror: 100%", "bye"}},
		{"", []string{"all is done", "0 errors"}},
		{"", nil},
	} {
		for _, end := range []string{"", "\n"} {
			if got := signalbox.FailureLine(strings.Join(c.printed, "\n") + end); got != c.why {
				t.Errorf("%q: got %q, want %q", c.printed, got, c.why)
			}
		}
	}
}

func TestFailuresAreAlike(t *testing.T) {
	for _, alike := range [][]string{
		{"ChargeError: card_declined (code 402)", "ChargeError: card_declined (code 17)", "ChargeError:  card_declined (code 9.5)"},
		{"waited 2m0s without being started", "waited 1h3m0.5s without being started", "waited 45s without being started"},
		{"open /tmp/run-8271/a.json: no such file", "open /tmp/run-93/b/c.json: no such file"},
		{"KeyError: 'id'", `KeyError: "total"`, "KeyError: 'a b'"},
		{"task queue-06h09jkkfrskmkv6ppcnfg14nc is gone", "task queue-06h09f5z1hkq6db26sr5955c00 is gone"},
		{"commit 3f9a2c1 failed", "commit 9b01dd7 failed", "commit 123 failed"},
		{"request 3f2b8c1e-1d2c-4e5f-8a9b-0c1d2e3f4a5b: timeout", "request 00000000-1d2c-4e5f-8a9b-0c1d2e3f4a5b: timeout"},
		{"dial 10.0.0.1:8080: refused", "dial 10.0.0.27:9000: refused"},
		{"SIGSEGV at 0xdeadbeef", "SIGSEGV at 0x1"},
	} {
		for _, line := range alike[1:] {
			if signalbox.Fingerprint(line) != signalbox.Fingerprint(alike[0]) {
				t.Errorf("%q and %q are told apart", alike[0], line)
			}
		}
	}
	seen := map[string]string{}
	for _, line := range []string{
		"ChargeError: card_declined", "ChargeError: card_expired", "TypeError: card_declined", "the agent can't reach the disk, and won't try", "the agent can't reach the net, and won't try",
		"open /srv/a: no such file", "open /srv/b: no such file", "decade", "facade",
	} {
		cause := signalbox.Fingerprint(line)
		if other := seen[cause]; other != "" || len(cause) != 12 {
			t.Errorf("%q and %q are alike: %q", line, other, cause)
		}
		seen[cause] = line
	}
	if got := signalbox.Fingerprint(""); got != "" {
		t.Errorf("no line has the cause %q", got)
	}
}

func TestWhyATaskFailed(t *testing.T) {
	log := &signalbox.Result{Tail: "start\nChargeError: card_declined\nbye\n", Output: "error: of the answer"}
	prose := &signalbox.Result{Tail: "I looked at the error: it is in billing.\n"}
	for name, c := range map[string]struct {
		task   signalbox.Task
		result *signalbox.Result
		want   string
	}{
		"a program's log":              {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonExitNonzero, Message: "the command failed: exit status 3"}, log, "ChargeError: card_declined"},
		"a program's answer":           {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonExitNonzero, Message: "exit status 3"}, &signalbox.Result{Tail: "bye", Output: log.Output}, "error: of the answer"},
		"a program that says nothing":  {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonExitNonzero, Message: "command exited with code 3"}, &signalbox.Result{}, "command exited with code 3"},
		"an agent that says it":        {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonAgentError, Message: "API Error: 529 overloaded"}, log, "API Error: 529 overloaded"},
		"an agent that says little":    {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonAgentError, Message: "it did not work"}, log, "ChargeError: card_declined"},
		"an agent's prose is no cause": {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonAgentError, Message: "it did not work"}, prose, "it did not work"},
		"a lost one":                   {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonLost, Message: "the agent went silent"}, log, "the agent went silent"},
		"a limit":                      {signalbox.Task{State: signalbox.Timeout, Reason: signalbox.ReasonWaitTimeout, Message: "\nwaited 2m0s without being started\nmore"}, nil, "waited 2m0s without being started"},
		"one that a person released":   {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonReleased, Message: "the slot was released"}, nil, ""},
		"a tool call":                  {signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonAgentError, Mode: signalbox.ModeTool, Message: "error: no"}, nil, ""},
		"one that completed":           {signalbox.Task{State: signalbox.Completed, Reason: signalbox.ReasonCompleted, Message: "error: none"}, log, ""},
		"one that was cancelled":       {signalbox.Task{State: signalbox.Cancelled, Reason: signalbox.ReasonCancelled, Message: "cancelled by ann"}, log, ""},
	} {
		task := c.task
		task.SetFailure(c.result)
		if task.Failure != c.want || task.Cause != signalbox.Fingerprint(c.want) {
			t.Errorf("%s: %q (%s), want %q", name, task.Failure, task.Cause, c.want)
		}
	}
	long := signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonLost, Message: strings.Repeat("ö", 400)}
	if long.SetFailure(nil); len(long.Failure) > signalbox.MaxFailureLine || !utf8.ValidString(long.Failure) || !strings.HasSuffix(long.Failure, "ö…") {
		t.Errorf("%d bytes: %q", len(long.Failure), long.Failure)
	}
}

// The change that ends a task also says why it failed.
func TestTheEndOfATaskSaysWhy(t *testing.T) {
	task := signalbox.Task{ID: "queue-1", State: signalbox.Working, Fence: 7, Agent: "coder"}
	c, err := signalbox.Next(task, signalbox.Event{
		Kind: signalbox.EventFinish, Fence: 7, Reason: signalbox.ReasonExitNonzero, Message: "exit status 1", Result: &signalbox.Result{Tail: "error: no disk\n"},
	})
	if err != nil || c.Task.Failure != "error: no disk" || c.Task.Cause == "" {
		t.Errorf("%+v, %v", c.Task, err)
	}
}

func FuzzFailureLine(f *testing.F) {
	f.Add("\x1b[31merror\x1b[0m: in red\r\nthread 'main' panicked at x:\nwhy")
	f.Add("\xff\x1b]8;;error:\x07")
	f.Fuzz(func(t *testing.T, log string) {
		task := signalbox.Task{State: signalbox.Failed, Reason: signalbox.ReasonExitNonzero, Message: "exit status 1"}
		task.SetFailure(&signalbox.Result{Tail: log})
		if task.Failure == "" || len(task.Failure) > signalbox.MaxFailureLine || strings.ContainsAny(task.Failure, "\n\r\x1b") || !utf8.ValidString(task.Failure) || len(task.Cause) != 12 {
			t.Errorf("%q gives %q (%q)", log, task.Failure, task.Cause)
		}
	})
}
