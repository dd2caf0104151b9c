package rest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

func TestContentKinds(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x01"
	b64 := base64.StdEncoding.EncodeToString([]byte(png))
	text := func(s string) string { b, _ := json.Marshal(s); return `[{"type":"text","text":` + string(b) + `}]` }
	for name, c := range map[string]struct {
		status           int
		kind, body       string
		want, structured string
		isError          bool
	}{
		"object":       {200, "application/json", ` {"a": 1.0}` + "\n", text(" {\"a\": 1.0}\n"), `{"a": 1.0}`, false},
		"list":         {200, "application/json; charset=utf-8", `[1]`, text(`[1]`), ``, false},
		"problem":      {201, "application/vnd.api+json", `{}`, text(`{}`), `{}`, false},
		"not json":     {200, "application/json", `{"a"`, text(`{"a"`), ``, false},
		"no type":      {200, "-", `{"a":1}`, text(`{"a":1}`), `{"a":1}`, false},
		"text":         {200, "text/plain", "hö", text("hö"), ``, false},
		"latin":        {200, "text/plain; charset=ISO-8859-1", "h\xf6", text("hö"), ``, false},
		"broken":       {200, "text/plain", "h\xf6", text("h\uFFFD"), ``, false},
		"xml":          {200, "application/atom+xml", "<a/>", `[{"type":"text","text":"<a/>"}]`, ``, false},
		"empty":        {204, "", "", text("HTTP 204 No Content"), ``, false},
		"image":        {200, "image/png", png, `[{"type":"image","data":"` + b64 + `","mimeType":"image/png"}]`, ``, false},
		"sniffed":      {200, "-", png, `[{"type":"image","data":"` + b64 + `","mimeType":"image/png"}]`, ``, false},
		"audio":        {200, "audio/mpeg", png, `[{"type":"audio","data":"` + b64 + `","mimeType":"audio/mpeg"}]`, ``, false},
		"other":        {200, "application/zip", png, `[{"type":"resource","resource":{"uri":"URL/p/x%20y","mimeType":"application/zip","blob":"` + b64 + `"}}]`, ``, false},
		"not found":    {404, "application/json", `{"why":"gone"}`, text("HTTP 404 Not Found\n{\"why\":\"gone\"}"), ``, true},
		"no body":      {500, "", "", text("HTTP 500 Internal Server Error"), ``, true},
		"error image":  {503, "image/png", png, text("HTTP 503 Service Unavailable (10 bytes of image/png)"), ``, true},
		"long refusal": {400, "text/html", strings.Repeat("é", 8<<10), text("HTTP 400 Bad Request\n" + strings.Repeat("é", 4<<10) + "…\n(8192 bytes more)"), ``, true},
		"odd redirect": {304, "", "", text("HTTP 304 Not Modified"), ``, true},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = nil
				if c.kind != "-" && c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			p := mustNew(t, toolconf.RestTool{Name: "t", URL: url + "/p/${parameters.x}?key=s3cret"})
			r := mustCall(t, p, "rest__t", `{"x":"x y"}`)
			if want := strings.ReplaceAll(c.want, "URL", url); string(r.Content) != want {
				t.Errorf("content %s\nwant    %s", r.Content, want)
			}
			if string(r.Structured) != c.structured || r.IsError != c.isError {
				t.Errorf("structured %s, error %v", r.Structured, r.IsError)
			}
		})
	}
}

// An answer of 100 MB fails only its own call.
func TestIncidentHugeAnswer(t *testing.T) {
	for _, announced := range []bool{true, false} {
		url, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/small" {
				ok(w, r)
				return
			}
			if announced {
				w.Header().Set("Content-Length", fmt.Sprint(100<<20))
			}
			chunk := make([]byte, 1<<20)
			for range 100 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		p := mustNew(t, toolconf.RestTool{Name: "t", URL: url + "/${parameters.what}"})
		_, err := call(t, p, "rest__t", `{"what":"huge"}`)
		wantCode(t, err, signalbox.CodeTooLarge, "16 MiB")
		mustCall(t, p, "rest__t", `{"what":"small"}`)
	}
}

// The answer to a HEAD may announce a large body that is never sent.
func TestHeadOfHugeResource(t *testing.T) {
	url, _ := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", fmt.Sprint(100<<20)) })
	r := mustCall(t, mustNew(t, toolconf.RestTool{Name: "t", Method: "HEAD", URL: url}), "rest__t", "")
	if !strings.Contains(string(r.Content), "HTTP 200 OK") || r.IsError {
		t.Errorf("%s", r.Content)
	}
}

// A call to an upstream that never answers ends at its timeout, and the
// upstream sees the connection close.
func TestIncidentNeverAnswering(t *testing.T) {
	asked, told := make(chan bool, 1), make(chan bool, 1)
	url, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- true
		<-r.Context().Done()
		told <- true
	})
	p := mustNew(t, toolconf.RestTool{Name: "t", URL: url})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-asked; cancel() }()
	_, err := p.Call(ctx, gateway.Call{Tool: "rest__t"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-told

	go func() { <-asked; p.Close() }()
	_, err = p.Call(t.Context(), gateway.Call{Tool: "rest__t"})
	wantCode(t, err, signalbox.CodeToolLost, "shut down")
	<-told
	_, err = p.Call(t.Context(), gateway.Call{Tool: "rest__t"})
	wantCode(t, err, signalbox.CodeToolDown, "shut down")
}

// Errors name the host, and never anything that may be secret.
func TestNetworkErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	drops, _ := upstream(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	half, _ := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	})
	for url, code := range map[string]signalbox.Code{
		"http://" + nobody: signalbox.CodeToolDown, "http://no.such.host.invalid": signalbox.CodeToolDown,
		drops: signalbox.CodeToolFailed, half: signalbox.CodeToolFailed,
		strings.Replace(drops, "http:", "https:", 1): signalbox.CodeToolDown,
	} {
		p := mustNew(t, toolconf.RestTool{Name: "t", Method: "POST", URL: strings.Replace(url, "://", "://joe:hunter2@", 1) + "/p?key=s3cret", Headers: map[string]string{"X-Key": "s3cret"}})
		_, err := call(t, p, "rest__t", "")
		host := strings.SplitN(url, "://", 2)[1]
		wantCode(t, err, code, host)
		if s := err.Error(); strings.Contains(s, "s3cret") || strings.Contains(s, "hunter2") {
			t.Errorf("a secret is in the error: %v", err)
		}
	}
}

func TestRedirects(t *testing.T) {
	elsewhere, stolen := upstream(t, ok)
	url, last := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch {
		case r.URL.Path == "/away":
			http.Redirect(w, r, elsewhere+"/x", http.StatusFound)
		case r.URL.Path == "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusTemporaryRedirect)
		case sscan(r.URL.Path, &n) && n > 0:
			http.Redirect(w, r, fmt.Sprintf("/n/%d", n-1), http.StatusPermanentRedirect)
		default:
			ok(w, r)
		}
	})
	p := mustNew(t,
		toolconf.RestTool{Name: "t", Method: "POST", URL: url + "/${parameters.where}", Headers: map[string]string{"X-Key": "s3cret"}},
		toolconf.RestTool{Name: "n", Method: "POST", URL: url + "/n/${parameters.n}", Headers: map[string]string{"X-Key": "s3cret"}})
	mustCall(t, p, "rest__n", `{"n":5}`)
	if last.URL != "/n/0" || last.Method != "POST" || last.Body != `{"n":5}` || last.Header.Get("X-Key") != "s3cret" {
		t.Errorf("after five redirects: %+v", last)
	}
	_, err := call(t, p, "rest__n", `{"n":6}`)
	wantCode(t, err, signalbox.CodeToolFailed, "more than 5")
	_, err = call(t, p, "rest__t", `{"where":"away"}`)
	wantCode(t, err, signalbox.CodeToolFailed, "another host", elsewhere)
	_, err = call(t, p, "rest__t", `{"where":"metadata"}`)
	wantCode(t, err, signalbox.CodeToolFailed, "another host", "169.254.169.254")
	if stolen.Method != "" {
		t.Errorf("the other host was asked: %+v", stolen)
	}
}

func sscan(path string, n *int) bool {
	_, err := fmt.Sscanf(path, "/n/%d", n)
	return err == nil
}

// A configured Host header sets the requested host name.
func TestHostHeader(t *testing.T) {
	url, last := upstream(t, ok)
	mustCall(t, mustNew(t, toolconf.RestTool{Name: "t", URL: url, Headers: map[string]string{"host": "api.example.test"}}), "rest__t", "")
	if last.Host != "api.example.test" {
		t.Errorf("host %q", last.Host)
	}
}

// TestAttackUpstreamEchoesSecrets: if an upstream echoes the request headers, as
// debug pages do, configured secrets are masked; values from the caller are not.
func TestAttackUpstreamEchoesSecrets(t *testing.T) {
	const key, odd = "canary-of-a-header", `can"ary\of-another`
	const stem, tail = "secret", "-and-the-rest" // one secret is the prefix of another
	page, seen := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		said, _ := json.Marshal(map[string]any{"headers": r.Header, "query": r.URL.RawQuery})
		if r.URL.Query().Get("mine") == "fail" {
			w.WriteHeader(http.StatusForbidden)
		}
		w.Write(said)
	})
	p := mustNew(t, toolconf.RestTool{
		Name: "echo", Method: "GET", URL: page + "/x?k=" + key + "&mine=${parameters.mine}", Headers: map[string]string{"Authorization": "Bearer " + key, "X-Odd": odd, "X-Long": stem + tail},
		Secrets: []string{key, odd, stem, stem + tail, "GET"},
	})
	for _, mine := range []string{"the-callers-own", "fail"} {
		args, _ := json.Marshal(map[string]string{"mine": mine})
		got, err := p.Call(t.Context(), gateway.Call{Tool: "rest__echo", Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		said := string(got.Content) + string(got.Structured)
		if strings.Contains(said, "canary") || strings.Contains(said, `ary\\`) || strings.Contains(said, tail) || !strings.Contains(said, "Bearer ***") || !strings.Contains(said, mine) {
			t.Errorf("%s", said)
		}
	}
	if seen.Header.Get("Authorization") != "Bearer "+key || seen.Header.Get("X-Odd") != odd {
		t.Errorf("it was sent %v", seen.Header)
	}
}

// A response that says that the request was not processed is not an answer of the
// tool.
func TestRefusedRequest(t *testing.T) {
	for name, x := range map[string]struct {
		status  int
		after   string
		refused bool
		wait    time.Duration
	}{
		"429 with a time":    {429, "7", true, 7 * time.Second},
		"429 without":        {429, "", true, 0},
		"503 with a time":    {503, "7", true, 7 * time.Second},
		"503 without":        {503, "", false, 0},
		"a time that is bad": {503, "soon", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", x.after)
				w.WriteHeader(x.status)
			})
			r, err := mustNew(t, toolconf.RestTool{Name: "t", URL: url}).Call(t.Context(), gateway.Call{Tool: "rest__t"})
			refused, is := errors.AsType[*gateway.Refused](err)
			switch {
			case is != x.refused:
				t.Errorf("%+v, %v", r, err)
			case !is && (err != nil || !r.IsError):
				t.Errorf("%+v, %v", r, err)
			case is && (refused.Status != x.status || refused.After != x.wait || !strings.Contains(url, refused.By)):
				t.Errorf("%+v", refused)
			}
		})
	}
}
