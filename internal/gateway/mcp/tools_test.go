package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

func (h *rig) names() string {
	var names []string
	for _, t := range h.Tools() {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func TestDefinitionPassesUnchanged(t *testing.T) {
	def := `{"x-new":[1.0,{"name":"inner"}],"name":"a", "inputSchema":{"type":"object","properties":{"name":{"const":12345678901234567890}}},"description":"<b>","_meta":{"k":1e0}}`
	h := ready(t, child("raw", "MCP_TEST_TOOLS="+def), mcp.Options{})
	got := h.Tools()[0]
	if want := strings.Replace(def, `"name":"a"`, `"name":"srv__a"`, 1); string(got.Definition) != want {
		t.Errorf("got  %s\nwant %s", got.Definition, want)
	}
	if got.Server != "srv" || got.Kind != gateway.KindMCP || got.Queue != "default" || got.Timeout != gateway.DefaultTimeout {
		t.Errorf("%+v", got)
	}
}

func TestQueueAndTimeoutOfATool(t *testing.T) {
	s := child("sdk")
	s.Queue, s.ToolQueues, s.RequestTimeout = "browser", map[string]string{"echo": "fast"}, time.Minute
	h := ready(t, s, mcp.Options{})
	for _, tool := range h.Tools() {
		want := "browser"
		if tool.Name == "srv__echo" {
			want = "fast"
		}
		if tool.Queue != want || tool.Timeout != time.Minute {
			t.Errorf("%s: queue %s, timeout %v", tool.Name, tool.Queue, tool.Timeout)
		}
	}
}

// TestUnmatchedConfiguredNamesAreReported: a misspelt name would leave its
// tool with other settings than intended.
func TestUnmatchedConfiguredNamesAreReported(t *testing.T) {
	s := child("sdk")
	s.ToolQueues = map[string]string{"echo": "fast", "ecko": "fast", "st*": "fast"}
	s.ToolsAllowed, s.ToolsDenied = []string{"e*", "st*", "nothing*"}, []string{"grow", "grew"}
	said := ready(t, s, mcp.Options{}).log.String()
	for _, word := range []string{"key=toolQueues tool=ecko", "key=toolQueues tool=st*", "key=toolsAllowed tool=nothing*", "key=toolsDenied tool=grew"} {
		if !strings.Contains(said, word) {
			t.Errorf("no %q in %s", word, said)
		}
	}
	if n := strings.Count(said, "does not have"); n != 4 {
		t.Errorf("%d warnings: %s", n, said)
	}
}

func TestAllowedAndDeniedTools(t *testing.T) {
	for _, c := range []struct {
		allowed, denied []string
		want            string
	}{
		{nil, nil, "srv__big srv__echo srv__fails srv__grow srv__hang srv__steps"},
		{[]string{"*"}, []string{"*g*"}, "srv__echo srv__fails srv__steps"},
		{[]string{"echo", "none", "s*s"}, nil, "srv__echo srv__steps"},
		{[]string{"e*"}, []string{"echo"}, ""},
		{nil, []string{"f*", "*o", "*n*"}, "srv__big srv__grow srv__steps"},
	} {
		s := child("sdk")
		s.ToolsAllowed, s.ToolsDenied = c.allowed, c.denied
		if got := ready(t, s, mcp.Options{}).names(); got != c.want {
			t.Errorf("allowed %v, denied %v: %s", c.allowed, c.denied, got)
		}
	}
}

func TestAllPagesAreListed(t *testing.T) {
	page := func(n string) string { return `{"name":"` + n + `","inputSchema":{"type":"object"}}` }
	h := ready(t, child("raw", "MCP_TEST_TOOLS="+page("a")+"//"+page("b")+"//"+page("c")), mcp.Options{})
	if got := h.names(); got != "srv__a srv__b srv__c" {
		t.Error(got)
	}
}

// TestInvalidToolIsSkipped: clients would reject the whole list because of
// it.
func TestInvalidToolIsSkipped(t *testing.T) {
	tools := []string{
		`{"name":"good","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`,
		`{"name":"good","description":"twice","inputSchema":{"type":"object"}}`,
		`{"name":"","inputSchema":{"type":"object"}}`,
		`{"name":5,"inputSchema":{"type":"object"}}`,
		`{"name":"a b","inputSchema":{"type":"object"}}`,
		`{"name":"a\u001b[2J","inputSchema":{"type":"object"}}`,
		`{"name":"` + strings.Repeat("n", 200) + `","inputSchema":{"type":"object"}}`,
		`{"name":"noschema"}`, `{"name":"list","inputSchema":[]}`, `{"name":"bool","inputSchema":true}`, `{"name":"str","inputSchema":{"type":"string"}}`,
		`{"name":"out","inputSchema":{"type":"object"},"outputSchema":7}`,
		`{"name":"desc","description":{},"inputSchema":{"type":"object"}}`,
		`null`, `7`, `"text"`,
	}
	h := ready(t, child("raw", "MCP_TEST_TOOLS="+strings.Join(tools, ",")), mcp.Options{})
	if got := h.names(); got != "srv__good" || strings.Contains(string(h.Tools()[0].Definition), "twice") {
		t.Errorf("%s", got)
	}
	if n := strings.Count(h.log.String(), "a tool is left out"); n != len(tools)-1 {
		t.Errorf("%d of %d are reported", n, len(tools)-1)
	}
	if strings.Contains(h.log.String(), "\x1b[2J") {
		t.Error("a control character is in the log")
	}
}

func TestToolListBeyondLimitIsError(t *testing.T) {
	t.Parallel()
	fat := sdk.NewServer(&sdk.Implementation{Name: "fat", Version: "0"}, &sdk.ServerOptions{PageSize: 1})
	for i := range 3 { // one on each page
		fat.AddTool(&sdk.Tool{Name: fmt.Sprint("t", i), Description: strings.Repeat("d", 6<<20), InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return nil, errors.New("nobody calls it")
			})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return fat }, nil))
	t.Cleanup(func() { // otherwise its own streams would hold it open
		web.CloseClientConnections()
		web.Close()
	})
	s0 := toolconf.Server{Name: "srv", Transport: toolconf.HTTP, URL: web.URL, Shared: true}
	h := start(t, s0, mcp.Options{Backoff: time.Hour})
	s := h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if !strings.Contains(s.Error, "larger than 16 MiB") {
		t.Errorf("%+v", s)
	}
}

func TestTooManyToolsIsError(t *testing.T) {
	t.Parallel()
	many := child("raw", "MCP_TEST_MANY=1200")
	h := start(t, many, mcp.Options{Backoff: time.Hour})
	s := h.until(func(s gateway.Server) bool { return s.State == gateway.StateFailed })
	if !strings.Contains(s.Error, "more than 1000 tools") || !strings.Contains(s.Error, "toolsAllowed") || s.Tools != 0 {
		t.Errorf("%+v", s)
	}
	many.ToolsAllowed = []string{"t1*12"} // t112, t1012 and t1112
	if got := ready(t, many, mcp.Options{}).Server().Tools; got != 3 {
		t.Errorf("%d tools", got)
	}
}
