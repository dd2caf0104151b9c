package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// The address to which a name resolves at the time of connecting decides
// whether the connection is allowed.
func TestEgressPolicy(t *testing.T) {
	page, _ := upstream(t, ok)
	port := page[strings.LastIndex(page, ":"):]
	for _, c := range []struct {
		host  string
		reach rest.EgressPolicy
		ok    bool
	}{
		{"127.0.0.1", rest.EgressPolicy{Named: []string{"127.0.0.1"}}, true},
		{"localhost", rest.EgressPolicy{Named: []string{"LocalHost."}}, true},
		{"127.0.0.1", rest.EgressPolicy{Private: true}, true},
		{"localhost", rest.EgressPolicy{Private: true}, true},
		{"127.0.0.1", rest.EgressPolicy{}, false},
		{"localhost", rest.EgressPolicy{}, false},
		{"localhost.", rest.EgressPolicy{}, false},
		{"[::1]", rest.EgressPolicy{}, false},
		{"[::ffff:127.0.0.1]", rest.EgressPolicy{}, false},
		{"2130706433", rest.EgressPolicy{}, false}, // 127.0.0.1 as one number
		{"0.0.0.0", rest.EgressPolicy{Private: true}, false},
		{"10.0.0.1", rest.EgressPolicy{}, false},
		{"169.254.169.254", rest.EgressPolicy{Private: true}, false},
		{"[fd00:ec2::254]", rest.EgressPolicy{Private: true}, false},
		{"[::ffff:169.254.169.254]", rest.EgressPolicy{Private: true}, false},
		{"metadata.google.internal", rest.EgressPolicy{Private: true}, false},
		{"METADATA.google.internal.", rest.EgressPolicy{Private: true}, false},
	} {
		client := rest.NewClient(c.reach)
		_, err := client.Do(t.Context(), &rest.Request{Method: "GET", URL: "http://" + c.host + port, Header: http.Header{}}, 1<<20)
		if c.ok != (err == nil) {
			t.Errorf("%s, %+v: %v", c.host, c.reach, err)
		}
		if code := signalbox.CodeOf(err); err != nil && code != signalbox.CodeToolFailed && code != signalbox.CodeToolDown {
			t.Errorf("%s: code %s of %v", c.host, code, err)
		}
		client.Close()
	}
}

// A metadata address is reachable only if the configuration names it as an
// address.
func TestNamedMetadataAddress(t *testing.T) {
	named := rest.EgressPolicy{Named: []string{"169.254.169.254"}}
	if err := named.Check("169.254.169.254"); err != nil {
		t.Error(err)
	}
	if err := named.Check("169.254.170.2"); err == nil {
		t.Error("an address other than the configured one is allowed")
	}
	for _, host := range []string{"metadata.google.internal", "METADATA.", "instance-data"} { // refused even if they do not resolve
		if err := (rest.EgressPolicy{Private: true}).Check(host); err == nil || !strings.Contains(err.Error(), "metadata host") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// FuzzTemplates: whatever the arguments are, a request goes to the configured
// host, with the same number of path segments, query pairs and headers.
func FuzzTemplates(f *testing.F) {
	for _, s := range []string{"x", "", "..", "/", "//evil.test/", "@evil.test", "\\\\evil.test", "?a=b&c", "#f", "%2e%2e", "%00", "a\r\nX-Evil: 1", "\u2028", "\xff", ":80", "‥", "%0d%0a", "${parameters.b}", "..;/", "%252e%252e%252f"} {
		f.Add(s, s)
	}
	p, err := rest.New([]toolconf.RestTool{{
		Name: "t", Method: "POST", URL: "http://joe@api.example.test:8080/v1/${parameters.a}/x-${parameters.b}.json?q=${parameters.a}&${parameters.b}=1",
		Headers: map[string]string{"X-A": "${parameters.a}", "X-B": "b ${parameters.b}"}, BodyTemplate: []byte(`{"a":"${parameters.a}","b":"-${parameters.b}"}`),
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	f.Fuzz(func(t *testing.T, a, b string) {
		args, err := json.Marshal(map[string]string{"a": a, "b": b})
		if err != nil {
			t.Fatal(err)
		}
		r, err := rest.BuildForTest(p, gateway.Call{Tool: "rest__t", Arguments: args})
		if err != nil {
			if signalbox.CodeOf(err) != signalbox.CodeValidation {
				t.Fatalf("%v", err)
			}
			return
		}
		req, err := http.NewRequest(r.Method, r.URL, nil)
		if err != nil {
			t.Fatalf("%q: %v", r.URL, err)
		}
		u, err := url.Parse(req.URL.String())
		if err != nil || u.Scheme != "http" || u.Host != "api.example.test:8080" || u.User.String() != "joe" || u.Fragment != "" {
			t.Fatalf("%q leads to %+v, %v", r.URL, u, err)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if len(segments) != 4 || segments[1] != "v1" || segments[2] == "" || segments[2] == ".." || segments[2] == "." {
			t.Fatalf("path %q", u.EscapedPath())
		}
		if clean := u.JoinPath(); clean.EscapedPath() != u.EscapedPath() {
			t.Fatalf("path %q is %q when cleaned", u.EscapedPath(), clean.EscapedPath())
		}
		query, err := url.ParseQuery(u.RawQuery)
		var pairs int
		for _, v := range query {
			pairs += len(v)
		}
		if err != nil || pairs != 2 {
			t.Fatalf("query %q: %v", u.RawQuery, err)
		}
		for name, values := range r.Header {
			if name != "X-A" && name != "X-B" && name != "Content-Type" || len(values) != 1 || strings.ContainsAny(values[0], "\r\n\x00") {
				t.Fatalf("headers %v", r.Header)
			}
		}
		var body map[string]string
		if err := json.Unmarshal(r.Body, &body); err != nil || len(body) != 2 {
			t.Fatalf("body %s: %v", r.Body, err)
		}
	})
}
