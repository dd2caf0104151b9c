package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// upstreamEnv makes this test binary an MCP server on stdin and stdout. Its
// value is an upstreamSpec.
const upstreamEnv = "SIGNALBOX_E2E_UPSTREAM"

type upstreamSpec struct {
	Log   string // file in which it records its calls
	Doors string // URL of the doors at which calls wait
}

// workArgs are the arguments of the server's tools.
type workArgs struct {
	Name string `json:"name"`
	Hold bool   `json:"hold,omitempty"` // wait at the door with that name
	MS   int    `json:"ms,omitempty"`   // otherwise work for that long
}

// upstream is the server. It reads one message after another and records in
// that order what begins and what is cancelled, so that its log proves how
// many calls it had in flight.
type upstream struct {
	spec upstreamSpec
	mu   sync.Mutex
	runs map[string]*run // in flight, by the request's ID
	log  *os.File
}

type run struct {
	id, tool string
	args     workArgs
	ctx      context.Context
	cancel   func()
}

func serveUpstream(spec string) error {
	u := &upstream{runs: map[string]*run{}}
	if err := json.Unmarshal([]byte(spec), &u.spec); err != nil {
		return err
	}
	var err error
	if u.log, err = os.OpenFile(u.spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name            string
				Arguments       workArgs
				RequestID       json.RawMessage
				ProtocolVersion string
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		switch m.Method {
		case "initialize":
			u.answer(string(m.ID), object{"protocolVersion": m.Params.ProtocolVersion, "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "upstream", "version": "1"}})
		case "ping":
			u.answer(string(m.ID), object{})
		case "tools/list":
			var tools []object
			for _, name := range []string{"work", "huge", "die", "mute", "refuse", "pid"} {
				tools = append(tools, object{"name": name, "inputSchema": object{"type": "object"}})
			}
			u.answer(string(m.ID), object{"tools": tools})
		case "tools/call":
			u.begin(&run{id: string(m.ID), tool: m.Params.Name, args: m.Params.Arguments})
		case "notifications/cancelled":
			u.over("cancel", string(m.Params.RequestID))
		default:
			if len(m.ID) > 0 {
				u.write(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": -32601, "message": "no such method"}})
			}
		}
	}
}

func (u *upstream) answer(id string, result any) {
	u.write(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": result})
}

func (u *upstream) write(m object) {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // it was decoded before
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	os.Stdout.Write(append(data, '\n'))
}

func (u *upstream) begin(r *run) {
	r.ctx, r.cancel = context.WithCancel(context.Background())
	u.mu.Lock()
	u.runs[r.id] = r
	fmt.Fprintln(u.log, "begin", r.args.Name, len(u.runs))
	u.mu.Unlock()
	go func() {
		if err := u.run(r); err != nil || !u.over("end", r.id) {
			return // a caller that cancels does not wait for the answer
		}
		switch r.tool {
		case "refuse":
			u.write(object{"jsonrpc": "2.0", "id": json.RawMessage(r.id), "error": object{"code": -32050, "message": "not today", "data": object{"until": []int{1, 2}}}})
		case "huge":
			u.huge(r.id)
		case "pid":
			u.answer(r.id, object{"content": []object{{"type": "text", "text": fmt.Sprint(os.Getpid())}}})
		default:
			u.answer(r.id, object{"content": []object{{"type": "text", "text": "did " + r.args.Name}}})
		}
	}()
}

// hugeSize is the size of the answer of the tool huge, in bytes.
const hugeSize = 100 << 20

func (u *upstream) huge(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	part := strings.Repeat("x", 1<<20)
	fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"`)
	for range hugeSize / len(part) {
		io.WriteString(os.Stdout, part)
	}
	fmt.Fprintf(os.Stdout, `"}]},"id":%s}`+"\n", id)
}

// over records the end of a call, once: a line has the event, the call, and
// the number of calls in flight.
func (u *upstream) over(what, id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.runs[id]
	if r == nil || r.tool == "mute" {
		return false
	}
	fmt.Fprintln(u.log, what, r.args.Name, len(u.runs))
	delete(u.runs, id)
	r.cancel()
	return true
}

// run does what the tool is for, before the answer. work waits at a door, or
// for a time; die exits the server; mute stops responding, even to a cancel.
func (u *upstream) run(r *run) error {
	switch {
	case r.tool == "die":
		os.Exit(3)
	case r.tool == "mute":
		select {}
	case r.args.Hold:
		q, err := http.NewRequestWithContext(r.ctx, http.MethodGet, u.spec.Doors+"/"+r.args.Name, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	t := time.NewTimer(time.Duration(r.args.MS) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// doors are where calls of the server wait until the test lets them continue.
type doors struct {
	b   *box
	log string
	srv *httptest.Server

	mu     sync.Mutex
	opened map[string]chan struct{}
	at     map[string]chan struct{}
}

func (b *box) doors() *doors {
	d := &doors{b: b, log: filepath.Join(b.root, "upstream.log"), opened: map[string]chan struct{}{}, at: map[string]chan struct{}{}}
	d.srv = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[1:]
		close(d.door(d.at, name))
		select {
		case <-d.door(d.opened, name):
		case <-r.Context().Done():
		}
	}))
	b.t.Cleanup(d.srv.Close)
	b.t.Cleanup(d.srv.CloseClientConnections) // before it waits for them
	return d
}

func (d *doors) door(of map[string]chan struct{}, name string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of[name] == nil {
		of[name] = make(chan struct{})
	}
	return of[name]
}

// arrived waits until the call of a name has reached its door.
func (d *doors) arrived(name string) {
	d.b.t.Helper()
	select {
	case <-d.door(d.at, name):
	case <-time.After(long):
		d.b.t.Fatalf("%s has not reached the server; the server's log:\n%s", name, d.b.read(d.log))
	}
}

func (d *doors) open(name string) { close(d.door(d.opened, name)) }

// server is the entry of the server in a tools file.
func (d *doors) server(queue string) map[string]any {
	d.b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.b.t.Fatal(err)
	}
	spec, err := json.Marshal(upstreamSpec{Log: d.log, Doors: d.srv.URL})
	if err != nil {
		d.b.t.Fatal(err)
	}
	return map[string]any{"command": self, "queue": queue, "env": map[string]string{upstreamEnv: string(spec), "GORACE": "atexit_sleep_ms=0"}}
}

// moment is a line of the server's log.
type moment struct {
	what, name string
	busy       int
}

func (d *doors) moments() []moment {
	d.b.t.Helper()
	var all []moment
	for line := range strings.Lines(d.b.read(d.log)) {
		var m moment
		if _, err := fmt.Sscan(line, &m.what, &m.name, &m.busy); err != nil {
			d.b.t.Fatalf("%v in %q", err, line)
		}
		all = append(all, m)
	}
	return all
}

// saw waits for an event of a call in the server's log.
func (d *doors) saw(what, name string) {
	d.b.t.Helper()
	d.b.until(what+" "+name+" in the server's log", func() bool {
		said, _ := os.ReadFile(d.log)
		return strings.Contains("\n"+string(said), "\n"+what+" "+name+" ")
	})
}

// most is the maximum number of concurrent calls of the server.
func most(t *testing.T, moments []moment) int {
	t.Helper()
	n := 0
	for _, m := range moments {
		n = max(n, m.busy)
	}
	return n
}
