package openapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/toolconf"

	"github.com/google/go-cmp/cmp"
)

// An unavailable description is retried, and its tools appear once it can be
// loaded.
func TestUnavailableURLIsRetried(t *testing.T) {
	var tries atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/a":
			fmt.Fprint(w, "done")
		case tries.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case tries.Load() == 2:
			fmt.Fprint(w, `{"openapi":"3.1.0"}`)
		default:
			fmt.Fprint(w, strings.Replace(get(`{}`), "http://127.0.0.1:1", "/", 1))
		}
	}))
	t.Cleanup(s.Close)
	var log strings.Builder
	p := openapi.New(toolconf.OpenAPI{Name: "s", Spec: s.URL + "/openapi.json"}, openapi.Options{Retry: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(func() { p.Close() })
	if got := p.Server(); got.State != gateway.StateStarting {
		t.Errorf("before its start: %+v", got)
	}
	ready := make(chan struct{})
	if err := p.Start(t.Context(), func() { close(ready) }); err != nil {
		t.Fatal(err)
	}
	<-ready
	if got := p.Server(); got.State != gateway.StateReady || got.Error != "" || got.Tools != 1 {
		t.Errorf("%+v", got)
	}
	if r := mustCall(t, p, "rest__a", `{}`); !strings.Contains(string(r.Content), "done") {
		t.Errorf("%s", r.Content)
	}
	p.Close()
	if !strings.Contains(log.String(), "503") || !strings.Contains(log.String(), "not a valid OpenAPI description") {
		t.Errorf("log: %s", &log)
	}
	if got := p.Server(); got.State != gateway.StateStopped {
		t.Errorf("after its end: %+v", got)
	}
}

// A server that never answers delays neither Start nor Close.
func TestIncidentURLNeverAnswers(t *testing.T) {
	asked, told := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(told)
	}))
	t.Cleanup(s.Close)
	p := openapi.New(toolconf.OpenAPI{Name: "s", Spec: s.URL}, openapi.Options{})
	if err := p.Start(t.Context(), func() { t.Error("the tools changed") }); err != nil {
		t.Fatal(err)
	}
	<-asked
	if len(p.Tools()) != 0 {
		t.Error("there are tools")
	}
	p.Close()
	<-told
}

// The status says why a description cannot be loaded.
func TestFailedServerReportsError(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	logged := make(chan struct{}, 1)
	p := openapi.New(toolconf.OpenAPI{Name: "s", Spec: s.URL + "/x?key=s3cret"}, openapi.Options{Retry: time.Hour, Log: slog.New(slog.NewTextHandler(signal(logged), nil))})
	t.Cleanup(func() { p.Close() })
	if err := p.Start(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	<-logged
	if got := p.Server(); got.State != gateway.StateFailed || !strings.Contains(got.Error, "404") || strings.Contains(got.Error, "s3cret") {
		t.Errorf("%+v", got)
	}
}

// signal is a log handler that signals its first line.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}

// A file is read at the start; Start fails if it is invalid.
func TestInvalidFileFailsStart(t *testing.T) {
	for _, c := range []toolconf.OpenAPI{
		write(t, "s.json", `{"openapi":"3.1.0"}`), {Name: "s", Spec: "/no/such/file.yaml"}, {Name: "s", Spec: "ftp://x/y"}, {Name: "s", Spec: t.TempDir()},
		{Name: "s", Spec: "http://127.0.0.1:1/x", BaseURL: "nonsense"},
	} {
		p := openapi.New(c, openapi.Options{})
		wantError(t, p.Start(t.Context(), func() {}), "openapiSpecs.s: ", strings.SplitN(c.Spec, "?", 2)[0])
		p.Close()
	}
}

// The configuration decides where requests go, and whether the configured
// headers go with them.
func TestServerSelection(t *testing.T) {
	const secret = "s3cret"
	for name, c := range map[string]struct {
		server, path, base string // PORT is the port of the server with the description
		headers            bool
		want               string // expected error; "": none
	}{
		"own":               {"/", "", "", true, ""},
		"own host":          {"http://127.0.0.1:1/x", "", "", true, ""},
		"none":              {"", "", "", true, ""},
		"elsewhere":         {"https://api.example.test/v1", "", "", false, ""},
		"elsewhere, secret": {"https://api.example.test/v1", "", "", true, "set baseUrl"},
		"elsewhere, named":  {"https://api.example.test/v1", "", "https://api.example.test/v1", true, ""},
		"private":           {"http://10.0.0.1/", "", "", false, "not in the public network"},
		"loopback":          {"http://localhost/", "", "", false, "not in the public network"},
		"private, named":    {"http://10.0.0.1/", "", "http://10.0.0.1/", true, ""},
		"metadata":          {"http://169.254.169.254/", "", "", false, "metadata"},
		"of one path":       {"/", "http://169.254.169.254/", "", false, "metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			servers := func(s string) string {
				if s == "" {
					return ""
				}
				return `"servers":[{"url":"` + s + `"}],`
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Key") == secret && c.base != "same" {
					t.Error("the configured headers went to the host of the description")
				}
				fmt.Fprint(w, `{"openapi":"3.0.0","info":{"title":"t","version":"1"},`+servers(c.server)+`"paths":{"/a":{`+servers(c.path)+`"get":{"responses":{"200":{"description":"d"}}}}}}`)
			}))
			t.Cleanup(s.Close)
			conf := toolconf.OpenAPI{Name: "s", Spec: s.URL + "/openapi.json", BaseURL: c.base}
			if c.headers {
				conf.Headers = map[string]string{"X-Key": secret}
			}
			_, err := openapi.Load(t.Context(), conf)
			if c.want != "" {
				wantError(t, err, c.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// The configuration selects operations by method and tag.
func TestFilters(t *testing.T) {
	c := parcels(t)
	c.ToolNamePrefix, c.Queue, c.IncludeMethods, c.TagFilter = "mail_", "web", []string{"PUT", "GET"}, []string{"depots", "none"}
	c.ToolQueues = map[string]string{"rest__mail_route": "slow", "setTree": "slower", "nothing": "x"}
	d, err := openapi.Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range d.Actions {
		got[a.Tool.Name] = a.Tool.Queue
	}
	if diff := cmp.Diff(map[string]string{"rest__mail_route": "slow", "rest__mail_setTree": "slower"}, got); diff != "" {
		t.Error(diff)
	}
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "nothing") {
		t.Errorf("%q", d.Warnings)
	}
}

// Schemas in the dialect of version 3.0 are converted to JSON Schema.
func TestVersion30(t *testing.T) {
	d, err := openapi.Load(t.Context(), write(t, "s.yaml", `
openapi: 3.0.3
info: {title: t, version: "1"}
servers: [{url: "http://127.0.0.1:1"}]
paths:
  /a.b/{c}:
    post:
      parameters:
        - {name: c, in: path, required: true, schema: {type: string}}
      requestBody:
        required: true
        content:
          application/merge-patch+json:
            schema:
              type: object
              properties:
                a: {type: integer, minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false}
                b: {type: string, nullable: true, enum: [x, y], example: x, xml: {name: z}, x-own: 1}
                c1: {nullable: true, allOf: [{$ref: "#/components/schemas/R"}]}
                d: {$ref: "#/components/schemas/R"}
      responses: {"200": {description: d}}
components: {schemas: {R: {type: string, format: date, default: 2020-01-02}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","additionalProperties":false,"required":["c"],"properties":{"c":{"type":"string"},"a":{"type":"integer","exclusiveMinimum":1,"maximum":9},
		"b":{"type":["string","null"],"enum":["x","y",null],"examples":["x"]},"c1":{"anyOf":[{"allOf":[{"type":"string","format":"date","default":"2020-01-02"}]},{"type":"null"}]},
		"d":{"type":"string","format":"date","default":"2020-01-02"}}}`
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(d.Actions[0].Schema.JSON, &g); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" || d.Actions[0].Tool.Name != "rest__post_a_b_c" {
		t.Errorf("%s:\n%s", d.Actions[0].Tool.Name, diff)
	}
	r, err := d.Actions[0].Build(map[string]any{"c": "x", "b": nil}, nil)
	if err != nil || string(r.Body) != `{"b":null}` || r.Header.Get("Content-Type") != "application/merge-patch+json" || r.URL != "http://127.0.0.1:1/a.b/x" {
		t.Errorf("%+v %s, %v", r, r.Body, err)
	}
}
