package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRetryAfterOfEndpoints(t *testing.T) {
	const own = 3 * time.Second
	for _, c := range []struct {
		header, value string
		want          time.Duration
	}{
		{"", "", own},
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "20", 20 * time.Millisecond},
		{"Retry-After", "3600", own}, // the caller is waiting for an answer
		{"Retry-After", "-1", own},
		{"Retry-After", "soon", own},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", own},
	} {
		h := http.Header{}
		h.Set(c.header, c.value)
		if got := wish(h, own); got != c.want {
			t.Errorf("%s: %s: %v, want %v", c.header, c.value, got, c.want)
		}
	}
	at := http.Header{"Retry-After": {time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)}}
	if got := wish(at, own); got < 20*time.Second || got > 30*time.Second {
		t.Errorf("a moment in 30 s: %v", got)
	}
}

func TestWhatIsRetried(t *testing.T) {
	for status, want := range map[int]bool{200: false, 307: false, 400: false, 401: false, 404: false, 408: true, 409: true, 422: false, 429: true, 500: true, 529: true} {
		if got := passing(&http.Response{StatusCode: status}); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
	for wait, want := range map[string]bool{"60": true, "61": false, "soon": true} { // a longer time is left to the caller
		if got := passing(&http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {wait}}}); got != want {
			t.Errorf("429 for %s: %v", wait, got)
		}
	}
	for word, want := range map[string]bool{"true": true, "false": false, "maybe": true} {
		if got := passing(&http.Response{StatusCode: 500, Header: http.Header{"X-Should-Retry": {word}}}); got != want {
			t.Errorf("an endpoint that says %s: %v", word, got)
		}
	}
}

// TestEveryRequestIsWhole: each retry sends the body and the headers again,
// and nothing of a failed answer is used.
func TestEveryRequestIsWhole(t *testing.T) {
	var asked []string
	client := &http.Client{Transport: trip(func(q *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, q.Method+" "+q.URL.String()+" "+q.Header.Get("X-Key")+" "+string(body))
		if len(asked) == 1 {
			return nil, errors.New("reset")
		}
		if len(asked) == 2 {
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After-Ms": {"1"}}, Body: io.NopCloser(strings.NewReader("no"))}, nil
		}
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(": hello\n\ndata: {\"a\":1}\n\nevent: x\ndata:\n\ndata: {\"b\":\ndata: 2}\n\ndata: [DONE]\n\ndata: no\n\n"))}, nil
	})}
	e, err := NewEndpoint(Options{BaseURL: "https://host.example/base/?version=3", Client: client}, "", "turn", http.Header{"X-Key": {"k"}})
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	err = e.Stream(t.Context(), map[string]int{"n": 1}, func(data []byte) error { events = append(events, string(data)); return nil }, func() bool { return true })
	if err != nil || strings.Join(events, "|") != "{\"a\":1}|{\"b\":\n2}" {
		t.Errorf("%q, %v", events, err)
	}
	for _, a := range asked {
		if a != `POST https://host.example/base/turn?version=3 k {"n":1}` {
			t.Errorf("asked %s", a)
		}
	}
	if len(asked) != 3 {
		t.Errorf("asked %d times", len(asked))
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// TestOddMembersAreIgnored: some endpoints send parts of a text as a list, or
// numbers as strings.
func TestOddMembersAreIgnored(t *testing.T) {
	var v struct {
		Text  []Text
		Count []Count
	}
	if err := json.Unmarshal([]byte(`{"text":["a",null,{"b":1},["c"],5,true,"\u00e4"],"count":[1,null,2.0,"3",{},1e3]}`), &v); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(v); string(got) != `{"Text":["a","","","","","","ä"],"Count":[1,0,2,0,0,1000]}` {
		t.Errorf("%s", got)
	}
}
