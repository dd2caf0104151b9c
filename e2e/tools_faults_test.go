package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// faulty is a gateway with a server that does what the test tells it, and
// other servers that do not work.
type faulty struct {
	*box
	doors    *doors
	director *process
	caller   *caller
	lured    atomic.Int32 // requests to the target of a description's reference
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{box: newBox(t)}
	f.doors = f.box.doors()
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f.lured.Add(1) }))
	t.Cleanup(trap.Close)
	described := func(ref string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "paths": {"/a": {"get":
				{"operationId": "a", "responses": {"200": {"$ref": "` + ref + `/latest/meta-data#/x"}}}}}}`))
		}))
		t.Cleanup(srv.Close)
		return srv.URL + "/openapi.json"
	}
	slow := f.doors.server("slow")
	slow["requestTimeoutMs"] = 400
	file := f.toolFile("tools.json", object{
		"queues": object{
			"default": object{"concurrent": 64}, "up": object{"concurrent": 3}, "slow": object{"concurrent": 1, "max_wait": "30s"},
		},
		"mcpServers": object{
			"up": f.doors.server("up"), "slow": slow,
			"unreachable": object{"url": "http://" + freePort(t) + "/mcp"},
			"missing":     object{"command": f.root + "/no-such-program"},
		},
		"openapiSpecs": object{
			"metadata":  object{"spec": described("http://169.254.169.254")},
			"elsewhere": object{"spec": described(trap.URL)},
		},
	})
	f.director = f.box.director("--tools", file)
	f.toolsReady(f.director.url, "up", "slow")
	f.caller = f.over(f.director.url, legacyEra)
	return f
}

// refused expects a call to fail with an error code of the gateway.
func (f *faulty) refused(p *pending, code string, words ...string) {
	f.t.Helper()
	res, err := p.ends()
	if err != nil || !res.IsError || !strings.HasPrefix(textOf(res), code+": ") {
		f.t.Errorf("%s: %.300s, %v; want %s", p.tool, textOf(res), err, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(textOf(res), word) {
			f.t.Errorf("%s: no %q in %s", p.tool, word, textOf(res))
		}
	}
}

// well expects everything else to work as before.
func (f *faulty) well() {
	f.t.Helper()
	for _, server := range []string{"up", "slow"} {
		if said := f.caller.says(server+"__work", workArgs{Name: "after"}); said != "did after" {
			f.t.Errorf("%s says %q", server, said)
		}
	}
	f.nothingHeld(f.director.url)
}

// Whatever a server does, its call ends with an explanation, no slot is lost,
// and the other tools continue.
func TestFaultsOfToolServers(t *testing.T) {
	f := newFaulty(t)
	f.neverThere()
	f.refusesAndIsUnknown()
	f.neverAnswers()
	f.tooLarge()
	f.dies()
}

// neverThere: unavailable servers report the reason, and block nothing.
func (f *faulty) neverThere() {
	f.t.Helper()
	for name, word := range map[string]string{
		"unreachable": "connection refused", "missing": "no such file", "metadata": "169.254.169.254", "elsewhere": "127.0.0.1",
	} {
		f.until(name+" has failed", func() bool { return f.toolServer(f.director.url, name).State == "failed" })
		if s := f.toolServer(f.director.url, name); !strings.Contains(s.Error, word) {
			f.t.Errorf("%s: %+v", name, s)
		}
	}
	if n := f.lured.Load(); n != 0 {
		f.t.Errorf("%d requests to where a reference led", n)
	}
	shown := f.want(0, "tools", "servers").out
	for _, word := range []string{"unreachable", "connection refused", "no such file"} {
		if !strings.Contains(shown, word) {
			f.t.Errorf("no %q in\n%s", word, shown)
		}
	}
	f.well()
}

func (f *faulty) refusesAndIsUnknown() {
	f.t.Helper()
	var said *jsonrpc.Error
	_, err := f.caller.call(f.ctx(), "up__refuse", object{"name": "r"}, "")
	if !errors.As(err, &said) || said.Code != -32050 || said.Message != "not today" || string(said.Data) != `{"until":[1,2]}` {
		f.t.Errorf("an error of the server: %v", err)
	}
	_, err = f.caller.call(f.ctx(), "up__nothing", nil, "")
	if !errors.As(err, &said) || said.Code != jsonrpc.CodeInvalidParams {
		f.t.Errorf("an unknown tool: %v", err)
	}
	f.well()
}

// neverAnswers: the timeout gives the slot to the next call.
func (f *faulty) neverAnswers() {
	f.t.Helper()
	mute := f.caller.begin("slow__mute", workArgs{Name: "mute"}, "")
	f.doors.saw("begin", "mute")
	next := f.caller.begin("slow__work", workArgs{Name: "next"}, "next")
	f.caller.hears("next 0 0 queued, position 1")
	f.refused(mute, "tool_timeout", "400ms")
	next.answers("did next")
	f.want(12, "tools", "call", "slow__mute", `{"name": "again"}`)
	f.well()
}

// tooLarge: an answer of 100 MB is refused, and concurrent calls are not
// affected.
func (f *faulty) tooLarge() {
	f.t.Helper()
	beside := f.caller.begin("up__work", workArgs{Name: "beside", Hold: true}, "")
	f.doors.arrived("beside")
	before := peakKB(f.t, f.director.pid())
	f.refused(f.caller.begin("up__huge", workArgs{Name: "huge"}, ""), "too_large", "16 MiB")
	f.doors.open("beside")
	beside.answers("did beside")
	if s := f.toolServer(f.director.url, "up"); s.Restarts != 0 {
		f.t.Errorf("%+v", s)
	}
	room := hugeSize >> 10
	if raced {
		room *= 4 // the race detector's shadow memory
	}
	if grown := peakKB(f.t, f.director.pid()) - before; grown > room {
		f.t.Errorf("the director has grown by %d kB: it kept all of the answer", grown)
	}
	f.well()
}

// dies: all calls in flight fail at once, and the server is restarted.
func (f *faulty) dies() {
	f.t.Helper()
	beside := f.caller.begin("up__work", workArgs{Name: "witness", Hold: true}, "")
	f.doors.arrived("witness")
	f.refused(f.caller.begin("up__die", workArgs{Name: "die"}, ""), "tool_lost", "the program has ended")
	f.refused(beside, "tool_lost", "went away during the call")
	f.well()
	if s := f.toolServer(f.director.url, "up"); s.Restarts != 1 {
		f.t.Errorf("%+v", s)
	}
}

// peakKB is the peak memory of a process.
func peakKB(t *testing.T, pid int) (kb int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(after, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}

// Signalbox is killed in the middle of calls: its servers end with it, and
// the next one begins with empty queues.
func TestAKilledDirectorLeavesNoToolServers(t *testing.T) {
	b := newBox(t)
	doors := b.doors()
	server := doors.server("scarce")
	file := b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 1}), "mcpServers": object{"scarce": server}})
	d := b.director("--tools", file)
	b.toolsReady(d.url, "scarce")
	c := b.over(d.url, modernEra)
	calls := []*pending{c.begin("scarce__mute", workArgs{Name: "held"}, "")}
	doors.saw("begin", "held")
	calls = append(calls, c.begin("scarce__work", workArgs{Name: "waits"}, ""))
	b.depth(d.url, "scarce", 1)
	pids := b.toolServer(d.url, "scarce").PIDs
	if len(pids) != 1 || !slices.Contains(b.living(), pids[0]) {
		t.Fatalf("processes of the server: %v", pids)
	}

	d.signal(syscall.SIGKILL)
	d.exits()
	begin := time.Now()
	b.until("the server is gone", func() bool { return !slices.Contains(b.living(), pids[0]) })
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("the server lived on for %s", took)
	}
	for _, p := range calls {
		if res, err := p.ends(); err == nil {
			t.Errorf("%s answered %s", p.tool, textOf(res))
		}
	}

	d = b.director("--tools", file)
	b.toolsReady(d.url, "scarce")
	b.nothingHeld(d.url)
	if said := b.over(d.url, legacyEra).says("scarce__work", workArgs{Name: "anew"}); said != "did anew" {
		t.Error(said)
	}
	d.stop()
	b.until("no process is left", func() bool { return len(b.living()) == 0 })
}
