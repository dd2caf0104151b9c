package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// roleVar makes the test binary a server; see roles.
const roleVar = "MCP_TEST_ROLE"

// notesVar names the file for hanging calls that name none.
const notesVar = "MCP_TEST_NOTES"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Unsetenv(roleVar)
		roles[role]()
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/signalbox-ai/signalbox/internal/proc.keptThread"), // lives as long as the process, on purpose
	)
}

var roles = map[string]func(){
	"sdk":      serveSDK,
	"raw":      func() { serveRaw(os.Stdout) },
	"sleep":    func() { time.Sleep(time.Hour) },
	"stubborn": stubborn,
	"family":   family,
	"refuses": func() {
		fmt.Fprintln(os.Stderr, "cannot open the key "+os.Getenv("API_KEY"))
		os.Exit(3)
	},
	"bare": func() { serveRawOld(os.Stdout) },
}

// serveSDK is an ordinary server.
func serveSDK() {
	if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

type echoArgs struct {
	Text string `json:"text"`
}

type hangArgs struct {
	Text string `json:"text,omitempty"`
}

// newServer is the server that the transport tests use.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "says it again"}, func(_ context.Context, _ *sdk.CallToolRequest, a echoArgs) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "steps"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: fmt.Sprint("step ", i+1)})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, a hangArgs) (*sdk.CallToolResult, any, error) {
		if a.Text == "" {
			a.Text = os.Getenv(notesVar)
		}
		if a.Text != "" {
			note(a.Text, "begun")
		}
		<-ctx.Done()
		if a.Text != "" {
			note(a.Text, "cancelled")
		}
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "big"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 17<<20)}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fails"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("it did not work")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		s.AddTool(&sdk.Tool{Name: "grown", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "I am new"}}}, nil
		})
		return &sdk.CallToolResult{}, nil, nil
	})
	return s
}

// note appends a line to a file that the test reads.
func note(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, line)
	f.Close()
}

// stubborn ends neither when its stdin closes nor on SIGTERM.
func stubborn() {
	signal.Ignore(syscall.SIGTERM)
	serveSDK()
	time.Sleep(time.Hour)
}

// family is a server with a child in its process group and a grandchild in a
// session of its own; both would outlive it.
func family() {
	for _, own := range []bool{false, true} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), roleVar+"=sleep")
		c.SysProcAttr = session(own)
		if err := c.Start(); err != nil {
			panic(err)
		}
	}
	serveSDK()
}

// request is a message that a raw server reads.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      json.RawMessage `json:"_meta"`
		Cursor    string          `json:"cursor"`
	} `json:"params"`
}

// serveRaw is a server that writes every byte itself. The test sets its
// answers in the environment.
func serveRaw(out io.Writer) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 32<<20)
	for in.Scan() {
		var r request
		if json.Unmarshal(in.Bytes(), &r) != nil || len(r.ID) == 0 {
			continue
		}
		rawAnswer(out, r)
	}
}

// serveRawOld is serveRaw for a server that crashes on unknown methods.
func serveRawOld(out io.Writer) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r request
		if json.Unmarshal(in.Bytes(), &r) != nil || len(r.ID) == 0 {
			continue
		}
		if r.Method == "server/discover" {
			os.Exit(1)
		}
		rawAnswer(out, r)
	}
}

func rawAnswer(out io.Writer, r request) {
	say := func(result string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","result":%s,"id":%s}`+"\n", result, r.ID) }
	switch r.Method {
	case "initialize":
		say(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"0"}}`)
	case "ping":
		say(`{}`)
	case "tools/list":
		rawList(r, say)
	case "tools/call":
		rawCall(out, r, say)
	default:
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no %s"}}`+"\n", r.ID, r.Method)
	}
}

func rawList(r request, say func(string)) {
	tools := os.Getenv("MCP_TEST_TOOLS")
	if n := os.Getenv("MCP_TEST_MANY"); n != "" {
		var many []string
		var count int
		fmt.Sscan(n, &count)
		for i := range count {
			many = append(many, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
		}
		tools = strings.Join(many, ",")
	}
	if tools == "" {
		tools = `{"name":"a","inputSchema":{"type":"object"}}`
	}
	if pages := strings.Split(tools, "//"); len(pages) > 1 {
		var at int
		fmt.Sscan(r.Params.Cursor, &at)
		next := ""
		if at+1 < len(pages) {
			next = fmt.Sprintf(`,"nextCursor":"%d"`, at+1)
		}
		say(`{"tools":[` + pages[at] + `]` + next + `}`)
		return
	}
	say(`{"tools":[` + tools + `]}`)
}

func rawCall(out io.Writer, r request, say func(string)) {
	var a struct {
		Do, Result, Error string
		Size              int
	}
	_ = json.Unmarshal(r.Params.Arguments, &a)
	switch a.Do {
	case "args":
		say(`{"content":[],"structuredContent":` + string(r.Params.Arguments) + `}`)
	case "result":
		say(a.Result)
	case "error":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":%s}`+"\n", r.ID, a.Error)
	case "write":
		fmt.Fprintln(out, strings.ReplaceAll(a.Result, "$ID", string(r.ID)))
	case "big":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"{\"id\":7,`)
		chunk := strings.Repeat("y", 1<<20)
		for range a.Size {
			_, _ = io.WriteString(out, chunk)
		}
		fmt.Fprintf(out, `"}],"id":99},"id":%s}`+"\n", r.ID)
	case "garbage":
		for i := range a.Size {
			fmt.Fprintln(out, "this is line", i, "of a chatty program with", os.Getenv("API_KEY"))
		}
		say(`{"content":[]}`)
	case "chatter":
		for i := range a.Size {
			fmt.Fprintln(os.Stderr, "this is line", i)
		}
		say(`{"content":[]}`)
	case "die":
		fmt.Fprintln(os.Stderr, "out of ideas, key", os.Getenv("API_KEY"))
		os.Exit(7)
	case "silent":
		if file := os.Getenv(notesVar); file != "" {
			note(file, "begun")
		}
	case "deaf":
		time.Sleep(time.Hour)
	case "pid":
		say(fmt.Sprintf(`{"content":[],"structuredContent":{"pid":%d}}`, os.Getpid()))
	case "meta":
		say(`{"content":[],"structuredContent":` + string(r.Params.Meta) + `}`)
	case "env":
		env, _ := json.Marshal(os.Environ())
		say(`{"content":[],"structuredContent":{"env":` + string(env) + `}}`)
	}
}
