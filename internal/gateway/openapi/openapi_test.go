package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/toolconf"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parcels(t *testing.T) toolconf.OpenAPI {
	t.Helper()
	spec, err := filepath.Abs("testdata/parcels/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return toolconf.OpenAPI{Name: "parcels", Spec: spec, ToolNamePrefix: "mail", ToolQueues: map[string]string{"getLabel": "labels", "parcels_create": "made", "delete_parcels_id": "gone"}}
}

// The tools of a description, as a model gets them.
func TestGolden(t *testing.T) {
	d, err := openapi.Load(t.Context(), parcels(t))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, a := range d.Actions {
		io.WriteString(&got, "# "+a.Tool.Name+" queue "+a.Tool.Queue+"\n")
		if err := json.Indent(&got, a.Tool.Definition, "", "  "); err != nil {
			t.Fatal(err)
		}
		io.WriteString(&got, "\n")
	}
	for _, w := range d.Warnings {
		io.WriteString(&got, "! "+w+"\n")
	}
	golden := "testdata/parcels/tools.golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the tools differ from %s (go test -update):\n%s", golden, diff)
	}
}

// start starts a provider and waits until it is ready.
func start(t *testing.T, c toolconf.OpenAPI, o openapi.Options) *openapi.Provider {
	t.Helper()
	p := openapi.New(c, o)
	t.Cleanup(func() { p.Close() })
	ready := make(chan struct{}, 1)
	if err := p.Start(t.Context(), func() { ready <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if p.Server().State == gateway.StateReady {
		return p
	}
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatalf("not ready: %+v", p.Server())
	}
	return p
}

func call(t *testing.T, p gateway.Provider, tool, args string) (gateway.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return p.Call(ctx, gateway.Call{Tool: tool, Arguments: json.RawMessage(args)})
}

func mustCall(t *testing.T, p gateway.Provider, tool, args string) gateway.Result {
	t.Helper()
	r, err := call(t, p, tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// api is a small HTTP API that matches the description and keeps its last
// request.
type api struct {
	*http.ServeMux
	last *http.Request
	body string
}

func newAPI(t *testing.T) (*api, string) {
	t.Helper()
	a := &api{ServeMux: http.NewServeMux()}
	stored := map[string]json.RawMessage{"7": json.RawMessage(`{"id":7,"to":{"city":"Ulm"},"weight":2}`)}
	answer := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
	a.HandleFunc("POST /api/v1/parcels", func(w http.ResponseWriter, r *http.Request) {
		var parcel map[string]any
		if err := json.Unmarshal([]byte(a.body), &parcel); err != nil || parcel["to"] == nil {
			answer(w, 422, `{"message":"no address"}`)
			return
		}
		answer(w, 201, `{"id":8}`)
	})
	a.HandleFunc("GET /api/v1/parcels/{id}", func(w http.ResponseWriter, r *http.Request) {
		if p, ok := stored[r.PathValue("id")]; ok {
			answer(w, 200, string(p))
			return
		}
		answer(w, 404, `{"message":"no such parcel"}`)
	})
	a.HandleFunc("DELETE /api/v1/parcels/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	a.HandleFunc("GET /api/v1/parcels/{id}/{label}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("label") == "label.png" {
			io.WriteString(w, "\x89PNG\r\n\x1a\n")
			return
		}
		io.WriteString(w, "To: Ulm")
	})
	a.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, `[]`) })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.last, a.body = r, string(body)
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return a, s.URL
}

// A real API, called through the tools of its description.
func TestRealAPI(t *testing.T) {
	a, url := newAPI(t)
	c := parcels(t)
	c.BaseURL, c.Headers = url+"/api/v1/?key=k", map[string]string{"authorization": "Bearer s3cret"}
	p := start(t, c, openapi.Options{})
	for _, step := range []struct {
		tool, args, uri, body string
		header                map[string]string
		content               string
		isError               bool
	}{
		{"listParcels", `{"state":["sent","lost"],"ids":[1,2],"tags":["a b","c|d"],"filter":{"weight":{"gt":1,"lt":[5,6]},"city":"Köln"},"page_size":5,"window":{"to":"z","from":"a&b"},"session":"s;1","X-Tenant":"acme"}`,
			"/api/v1/parcels?key=k&state=sent&state=lost&ids=1,2&tags=a%20b%7Cc%7Cd&filter%5Bcity%5D=K%C3%B6ln&filter%5Bweight%5D%5Bgt%5D=1&filter%5Bweight%5D%5Blt%5D=5&filter%5Bweight%5D%5Blt%5D=6&page%5Bsize%5D=5&from=a%26b&to=z", "",
			map[string]string{"X-Tenant": "acme", "Cookie": "session=s%3B1", "Authorization": "Bearer s3cret"}, `[]`, false},
		{"listParcels", `{}`, "/api/v1/parcels?key=k", "", map[string]string{"X-Tenant": "", "Cookie": ""}, `[]`, false},
		{"parcels_create", `{"to":{"city":"Ulm","lines":["<1>"]},"weight":12345678901234567890,"note":"extra","X-Tenant":"t"}`,
			"/api/v1/parcels?key=k", `{"note":"extra","to":{"city":"Ulm","lines":["<1>"]},"weight":12345678901234567890}`, map[string]string{"Content-Type": "application/json", "X-Tenant": "t"}, `{"id":8}`, false},
		{"getParcel", `{"id":7}`, "/api/v1/parcels/7?key=k", "", nil, `Ulm`, false},
		{"getParcel", `{"id":9}`, "/api/v1/parcels/9?key=k", "", nil, "HTTP 404 Not Found\\n{", true},
		{"replaceParcel", `{"id":7,"body":{"id":8,"city":null}}`, "/api/v1/parcels/7?key=k", `{"city":null,"id":8}`, nil, `[]`, false},
		{"delete_parcels_id", `{"id":7,"reason":"q","reason_header":"h"}`, "/api/v1/parcels/7?key=k&reason=q", "", map[string]string{"Reason": "h"}, "204", false},
		{"getLabel", `{"id":7,"format":"png"}`, "/api/v1/parcels/7/label.png?key=k", "", nil, `"mimeType":"image/png"`, false},
		{"getLabel", `{"id":7,"format":"txt"}`, "/api/v1/parcels/7/label.txt?key=k", "", nil, `To: Ulm`, false},
		{"route", `{"points":["a/b","c"],"X-Via":["x","y"],"options":{"fast":true}}`, "/api/v1/depots/;points=a%2Fb;points=c/route?key=k&options=%7B%22fast%22%3Atrue%7D", "", map[string]string{"X-Via": "x,y"}, ``, false},
		{"addNote", `{"name":"süd","text":"a&b","labels":["x","y"]}`, "/api/v1/depots/s%C3%BCd/notes?key=k", "labels=x&labels=y&text=a%26b", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, ``, false},
		{"setTree", `{"name":"n","body":{"label":"a","shelves":[{"label":"b"}]}}`, "/api/v1/depots/n/notes?key=k", `{"label":"a","shelves":[{"label":"b"}]}`, nil, ``, false},
		{"setTree", `{"name":"n"}`, "/api/v1/depots/n/notes?key=k", ``, map[string]string{"Content-Type": ""}, ``, false},
	} {
		r := mustCall(t, p, "rest__mail_"+step.tool, step.args)
		if a.last.RequestURI != step.uri || a.body != step.body {
			t.Errorf("%s: %s %s\nwant %s %s", step.tool, a.last.RequestURI, a.body, step.uri, step.body)
		}
		for name, want := range step.header {
			if got := a.last.Header.Get(name); got != want {
				t.Errorf("%s: header %s is %q, want %q", step.tool, name, got, want)
			}
		}
		if !strings.Contains(strings.ReplaceAll(string(r.Content), `\"`, `"`), step.content) || r.IsError != step.isError {
			t.Errorf("%s: %s, error %v", step.tool, r.Content, r.IsError)
		}
	}
}

// Invalid arguments are refused before any request.
func TestInvalidArguments(t *testing.T) {
	p := start(t, parcels(t), openapi.Options{})
	for _, c := range [][2]string{
		{"getParcel", `{}`}, {"getParcel", `{"id":"x"}`}, {"getParcel", `{"id":1,"more":2}`}, {"getParcel", `{"id":null}`},
		{"listParcels", `{"state":["eaten"]}`}, {"listParcels", `{"page_size":0}`}, {"listParcels", `{"X-Tenant":"a\nb"}`},
		{"parcels_create", `{"to":{"city":"Ulm"},"weight":0}`}, {"parcels_create", `{"weight":1}`},
		{"addNote", `{"name":"..","text":"x"}`}, {"addNote", `{"name":"","text":"x"}`}, {"setTree", `{"name":"a/../../b"}`},
	} {
		err := p.Check(gateway.Call{Tool: "rest__mail_" + c[0], Arguments: json.RawMessage(c[1])})
		if signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
	_, err := call(t, p, "rest__mail_uploadPhoto", `{}`)
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Errorf("an operation that was left out: %v", err)
	}
	if s := p.Server(); s.Name != "parcels" || s.Kind != gateway.KindOpenAPI || s.Tools != len(p.Tools()) || s.Tools == 0 {
		t.Errorf("%+v", s)
	}
}
