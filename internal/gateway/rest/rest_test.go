package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is a request as the upstream received it.
type seen struct {
	Method, URL, Host, Body string
	Header                  http.Header
}

// upstream answers every request with answer and keeps the last request.
func upstream(t *testing.T, answer http.HandlerFunc) (string, *seen) {
	t.Helper()
	last := &seen{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*last = seen{r.Method, r.RequestURI, r.Host, string(body), r.Header}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, last
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"ok":true}`)
}

func mustNew(t *testing.T, tools ...toolconf.RestTool) *rest.Provider {
	t.Helper()
	p, err := rest.New(tools)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func call(t *testing.T, p *rest.Provider, tool, args string) (gateway.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return p.Call(ctx, gateway.Call{Tool: tool, Arguments: json.RawMessage(args)})
}

func mustCall(t *testing.T, p *rest.Provider, tool, args string) gateway.Result {
	t.Helper()
	r, err := call(t, p, tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantCode(t *testing.T, err error, code signalbox.Code, parts ...string) {
	t.Helper()
	if signalbox.CodeOf(err) != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}

// One tool with templates in all possible places.
func TestTemplates(t *testing.T) {
	url, last := upstream(t, ok)
	p := mustNew(t, toolconf.RestTool{
		Name: "issue", Description: "Files an issue.", Method: "post",
		URL:     url + "/v1/repos/${parameters.repo.owner}/${parameters.repo.name}.git?q=${parameters.q}&label=${parameters.labels}&fixed=a+b",
		Headers: map[string]string{"Authorization": "Bearer s3cret", "X-Trace": "t-${parameters.trace}", "X-Maybe": "${parameters.maybe}"},
		BodyTemplate: []byte(`{"title":"On ${parameters.q}: ${parameters.n}","n":"${parameters.n}","deep":{"list":["${parameters.labels}","x"]},
			"gone":"${parameters.maybe}","null":"${parameters.nothing}","same":1.50,"html":"<&>"}`),
		Parameters: []byte(`{"type":"object","properties":{"trace":{"default":"none"}}}`),
	})
	mustCall(t, p, "rest__issue", `{"repo":{"owner":"a/b","name":"ü"},"q":"x&y=1#z","labels":["p q","é"],"n":12345678901234567890,"nothing":null}`)
	if want := "/v1/repos/a%2Fb/%C3%BC.git?q=x%26y%3D1%23z&label=p%20q&label=%C3%A9&fixed=a+b"; last.Method != "POST" || last.URL != want {
		t.Errorf("%s %s\nwant POST %s", last.Method, last.URL, want)
	}
	if want := `{"deep":{"list":[["p q","é"],"x"]},"html":"<&>","n":12345678901234567890,"null":null,"same":1.50,"title":"On x&y=1#z: 12345678901234567890"}`; last.Body != want {
		t.Errorf("body %s\nwant %s", last.Body, want)
	}
	h := last.Header
	if h.Get("Authorization") != "Bearer s3cret" || h.Get("X-Trace") != "t-none" || len(h["X-Maybe"]) != 0 || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
	mustCall(t, p, "rest__issue", `{"repo":{"owner":"a","name":"b"},"q":0,"n":true}`)
	if want := "/v1/repos/a/b.git?q=0&fixed=a+b"; last.URL != want {
		t.Errorf("pairs without their argument: %s, want %s", last.URL, want)
	}
}

func TestBodies(t *testing.T) {
	url, last := upstream(t, ok)
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	defaults := []byte(`{"type":"object","properties":{"a":{},"lang":{"type":"string","default":"de"}}}`)
	for name, c := range map[string]struct {
		tool       toolconf.RestTool
		args, want string
	}{
		"arguments":         {toolconf.RestTool{Method: "POST"}, `{"b": 1e2, "a":[ ]}`, `{"b": 1e2, "a":[ ]}`},
		"no arguments":      {toolconf.RestTool{Method: "PUT"}, ``, `{}`},
		"get has none":      {toolconf.RestTool{Method: "GET"}, `{"a":1}`, ``},
		"get with template": {toolconf.RestTool{BodyTemplate: []byte(`{"q":"${parameters.a}"}`)}, `{"a":1}`, `{"q":1}`},
		"all of it":         {toolconf.RestTool{Method: "POST", BodyTemplate: []byte(`"${parameters.doc}"`)}, `{"doc":{"x":[1]}}`, `{"x":[1]}`},
		"all of it missing": {toolconf.RestTool{Method: "POST", BodyTemplate: []byte(`"${parameters.doc}"`)}, `{}`, ``},
		"form":              {toolconf.RestTool{Method: "POST", Headers: form, BodyTemplate: []byte(`{"a":"${parameters.a}","b":"${parameters.b}"}`)}, `{"a":"x&y","b":[1,2]}`, `a=x%26y&b=1&b=2`},
		"form of arguments": {toolconf.RestTool{Method: "POST", Headers: form}, `{"a":"x y&","b":[1,2],"c":{"d":null}}`, `a=x+y%26&b=1&b=2&c=%7B%22d%22%3Anull%7D`},
		"empty form":        {toolconf.RestTool{Method: "POST", Headers: form}, ``, ``},
		"form, defaults":    {toolconf.RestTool{Method: "POST", Headers: form, Parameters: defaults}, `{"a":1}`, `a=1&lang=de`},
		"defaults":          {toolconf.RestTool{Method: "POST", Parameters: defaults}, `{"a":1e2}`, `{"a":1e2,"lang":"de"}`},
		"defaults given":    {toolconf.RestTool{Method: "POST", Parameters: defaults}, `{"lang":"fr", "a":1e2}`, `{"lang":"fr", "a":1e2}`},
		"text":              {toolconf.RestTool{Method: "POST", Headers: map[string]string{"Content-Type": "text/plain"}, BodyTemplate: []byte(`"say ${parameters.a}"`)}, `{"a":"\"hi\""}`, `say "hi"`},
		"places in lists":   {toolconf.RestTool{Method: "POST", BodyTemplate: []byte(`["${parameters.l[0].a}","${parameters.l.1}","${parameters.l[9]}","${parameters.l.x}"]`)}, `{"l":[{"a":1},"y"]}`, `[1,"y"]`},
		"not a template":    {toolconf.RestTool{Method: "POST", BodyTemplate: []byte(`"${x} $y ${parameters.a}"`)}, `{"a":"${parameters.a}"}`, `"${x} $y ${parameters.a}"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.tool.Name, c.tool.URL = "t", url
			mustCall(t, mustNew(t, c.tool), "rest__t", c.args)
			if last.Body != c.want {
				t.Errorf("body %q, want %q", last.Body, c.want)
			}
		})
	}
}

// The definition has the schema exactly as configured.
func TestDefinition(t *testing.T) {
	schema := `{"type":"object","properties":{"z":{"type":"string","x-own":1},"a":{}},"required":["z"]}`
	p := mustNew(t,
		toolconf.RestTool{Name: "get", Description: "Gets <it>.", URL: "http://example.test", Parameters: []byte(schema), Queue: "web", Timeout: time.Second},
		toolconf.RestTool{Name: "bare", Method: "DELETE", URL: "http://example.test/x", Parameters: []byte(`{"properties":{"a":{"type":"string"}}}`)},
	)
	tools := p.Tools()
	if want := `{"name":"rest__get","description":"Gets <it>.","inputSchema":` + schema + `,"annotations":{"readOnlyHint":true}}`; string(tools[0].Definition) != want {
		t.Errorf("%s\nwant %s", tools[0].Definition, want)
	}
	if want := `{"name":"rest__bare","inputSchema":{"properties":{"a":{"type":"string"}},"type":"object"},"annotations":{"destructiveHint":true,"idempotentHint":true}}`; string(tools[1].Definition) != want {
		t.Errorf("%s\nwant %s", tools[1].Definition, want)
	}
	if g := tools[0]; g.Queue != "web" || g.Timeout != time.Second || g.Server != "rest" || g.Kind != gateway.KindREST {
		t.Errorf("%+v", g)
	}
	if b := tools[1]; b.Queue != "default" || b.Timeout != gateway.DefaultTimeout {
		t.Errorf("%+v", b)
	}
	if s := p.Server(); s.Name != "rest" || s.State != gateway.StateReady || s.Tools != 2 {
		t.Errorf("%+v", s)
	}
}

// Invalid arguments are refused before any request and before a slot is
// taken.
func TestInvalidArguments(t *testing.T) {
	url, last := upstream(t, ok)
	p := mustNew(t,
		toolconf.RestTool{Name: "t", URL: url + "/a/${parameters.id}/b?x=1${parameters.mix}", Headers: map[string]string{"X-H": "v${parameters.h}"},
			Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer","minimum":3},"e":{"enum":["a","b"]}},"required":["need"]}`)},
		toolconf.RestTool{Name: "tree", URL: url, Parameters: []byte(`{"type":"object","required":["kids"],"properties":{"kids":{"$ref":"#"}}}`)},
		toolconf.RestTool{Name: "loop", URL: url, Parameters: []byte(`{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`)},
	)
	fits := `"need":1,"mix":1,"h":"x"`
	for args, part := range map[string]string{
		`[]`: "JSON object", `{`: "not JSON", `{}`: "need", `{"need":1,"mix":1,"h":""}`: "arguments.id",
		`{` + fits + `,"id":"x","n":2}`:                  "minimum",
		`{` + fits + `,"id":"x","n":"3"}`:                "integer",
		`{` + fits + `,"id":"x","n":3.5}`:                "integer",
		`{` + fits + `,"id":"x","e":"c"}`:                "enum",
		`{` + fits + `,"id":""}`:                         "empty",
		`{` + fits + `,"id":".."}`:                       "another one",
		`{` + fits + `,"id":"."}`:                        "another one",
		`{` + fits + `,"id":"../../admin"}`:              "another one",
		`{` + fits + `,"id":"..\\x"}`:                    "another one",
		`{` + fits + `,"id":null}`:                       "missing",
		`{"need":1,"id":"x","h":"x"}`:                    "mix",
		`{"need":1,"id":"x","mix":"x"}`:                  "header",
		`{"need":1,"id":"x","mix":1,"h":"a\r\nEvil: 1"}`: "line end",
		`{"need":1,"id":"x","mix":1,"h":"a\u0000"}`:      "control",
	} {
		err := p.Check(gateway.Call{Tool: "rest__t", Arguments: json.RawMessage(args)})
		if signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%s: %v", args, err)
			continue
		}
		var e *signalbox.Error
		if e = err.(*signalbox.Error); !strings.Contains(e.Message+e.Field, part) {
			t.Errorf("%s: %s (%s), expected a mention of %s", args, e.Message, e.Field, part)
		}
	}
	if err := p.Check(gateway.Call{Tool: "rest__t", Arguments: json.RawMessage(`{` + fits + `,"id":"x","n":1e20,"e":"a"}`)}); err != nil {
		t.Error(err)
	}
	wantCode(t, p.Check(gateway.Call{Tool: "rest__tree"}), signalbox.CodeValidation, "kids")
	for _, tool := range []string{"rest__tree", "rest__loop"} { // validating these would not end
		if err := p.Check(gateway.Call{Tool: tool, Arguments: json.RawMessage(`{"kids":{}}`)}); err != nil {
			t.Error(err)
		}
	}
	wantCode(t, p.Check(gateway.Call{Tool: "rest__none"}), signalbox.CodeNotFound)
	if last.Method != "" {
		t.Errorf("the upstream was asked: %+v", last)
	}
}

// The error lists all mistakes of all tools, each with its place.
func TestConfigurationErrors(t *testing.T) {
	_, err := rest.New([]toolconf.RestTool{
		{Name: "a", URL: "https://${parameters.host}/", Where: "f.json:1"},
		{Name: "b", URL: "https://api.${parameters.host}:1/", Where: "f.json:2"},
		{Name: "c", URL: "ftp://x/", Method: "TRACE", Where: "f.json:3"},
		{Name: "d", URL: "${parameters.url}", Where: "f.json:4"},
		{Name: "e", URL: "https://user:hunter2@x:99x/", Where: "f.json:5"},
		{Name: "f", URL: "https://x/a#${parameters.x}", Where: "f.json:6"},
		{Name: "g", URL: "https://x/${parameters.}", Where: "f.json:7"},
		{Name: "h", URL: "https://x/${parameters.a", Where: "f.json:8"},
		{Name: "i", URL: "https://x/", Headers: map[string]string{"Bad Name": "x", "Host": "${parameters.h}", "Transfer-Encoding": "x", "X-Split": "a\nb"}, Where: "f.json:9"},
		{Name: "j", URL: "https://x/", BodyTemplate: []byte(`{"${parameters.k}":1}`), Where: "f.json:10"},
		{Name: "k", URL: "https://x/", BodyTemplate: []byte(`{`), Parameters: []byte(`{"type":"array"}`), Where: "f.json:11"},
		{Name: "l", URL: "https://x/", Parameters: []byte(`{"type":"object","properties":3}`), Where: "f.json:12"},
		{Name: "no name", URL: "https://x/", Where: "f.json:13"},
		{Name: "m", URL: "https://x/"}, {Name: "m", URL: "https://x/", Where: "f.json:14"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		"f.json:1: restTools.a.url", "f.json:2: restTools.b.url", "f.json:3: restTools.c.url", "restTools.c.method", "f.json:4:", "f.json:5:", "f.json:6:", "f.json:7:",
		"f.json:8:", "f.json:9:", "Bad Name", "the header Host", "Transfer-Encoding", "X-Split", "f.json:10:", "f.json:11: restTools.k.bodyTemplate", "restTools.k.parametersSchema",
		"f.json:12:", "f.json:13:", "f.json:14:", "another tool of that name",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q", part)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("a password is in the error")
	}
	if t.Failed() {
		t.Log(err)
	}
}
