package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// newClient returns a client with short delays between tries.
func newClient(t *testing.T, url string, opts client.Options) *client.Client {
	t.Helper()
	if opts.Backoff == nil {
		opts.Backoff = func(int) time.Duration { return time.Millisecond }
	}
	c, err := client.New(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// drop ends a request without a reply.
func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func TestAddress(t *testing.T) {
	for _, test := range []struct{ address, url, err string }{
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080", ""},
		{"127.0.0.1:8080", "http://127.0.0.1:8080", ""},
		{"localhost", "http://localhost", ""},
		{"https://host/prefix/", "https://host/prefix", ""},
		{"", "", "names no host"},
		{"ftp://host", "", `scheme is "ftp"`},
		{"http://", "", "names no host"},
		{"http://user:secret@host", "", "user name does not belong there"},
		{"http://host?x=1", "", "no query"},
		{"http://[::1", "", "want a URL"},
		{"http://host:port", "", "want a URL"},
	} {
		c, err := client.New(test.address, client.Options{})
		switch {
		case test.err == "" && (err != nil || c.URL() != test.url):
			t.Errorf("%q: %v, want %s", test.address, err, test.url)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%q: %v, want an error that says %s", test.address, err, test.err)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error shows the password: %v", test.address, err)
		}
	}
	if _, err := client.New("host", client.Options{Token: "a\nb"}); err == nil {
		t.Error("a token with a line end was taken")
	}
}

func TestHeaders(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer sesame" {
			t.Errorf("Authorization: %q", got)
		}
		if got := r.Header.Get("User-Agent"); got != "test/1" {
			t.Errorf("User-Agent: %q", got)
		}
		if got := r.Header.Get("Traceparent"); got != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" {
			t.Errorf("Traceparent: %q", got)
		}
		if r.URL.EscapedPath() != "/prefix/api/queue/a%2Fb" {
			t.Errorf("path: %s", r.URL.EscapedPath())
		}
		reply(w, 200, api.Task{})
	})
	c := newClient(t, url+"/prefix", client.Options{Proof: client.ProofOff, Token: "sesame", UserAgent: "test/1", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if _, err := c.Task(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
}

func TestRefusals(t *testing.T) {
	full := api.Error{Error: "queue_full", Message: "queue is at capacity (50 tasks)", Hint: "wait", Retryable: true, RetryAfter: 3}
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		status  int
		code    string
		text    string
	}{
		{"director", func(w http.ResponseWriter, r *http.Request) { reply(w, 503, full) }, 503, "queue_full", "queue is at capacity (50 tasks)"},
		{"other server", http.NotFound, 404, client.CodeUnexpectedAnswer, "404 page not found"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://login.test/", 302) }, 302, client.CodeUnexpectedAnswer, "https://login.test/"},
		{"not JSON", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }, 200, client.CodeUnexpectedAnswer, "expected JSON"},
		{"empty", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(400) }, 400, client.CodeUnexpectedAnswer, "400 Bad Request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := newClient(t, serve(t, test.handler), client.Options{}).Submit(t.Context(), api.SubmitRequest{Prompt: "p"}, client.SubmitOptions{})
			var e *client.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v is no *client.Error", err)
			}
			if e.Status != test.status || client.Code(err) != test.code || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("status %d, code %s: %v", e.Status, e.Code(), err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	tries := 0
	c := newClient(t, "http://"+l.Addr().String(), client.Options{OnRetry: func(error, time.Duration) { tries++ }})
	_, err = c.Submit(t.Context(), api.SubmitRequest{Prompt: "p"}, client.SubmitOptions{})
	var gone *client.UnreachableError
	if !errors.As(err, &gone) || !client.IsUnreachable(err) || gone.Sent || gone.Key != "" || tries != 0 {
		t.Fatalf("%v (sent %v, tries %d)", err, gone != nil && gone.Sent, tries)
	}
	if !strings.HasPrefix(err.Error(), "cannot reach the director at http://127.0.0.1:") {
		t.Fatal(err)
	}
}

func TestNoAnswerInTime(t *testing.T) {
	release := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	_, err := newClient(t, url, client.Options{Timeout: time.Millisecond}).Status(t.Context())
	if !client.IsUnreachable(err) || !strings.Contains(err.Error(), "did not answer in time") {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errors.New("enough")
	time.AfterFunc(time.Millisecond, func() { cancel(want) })
	if _, err = newClient(t, url, client.Options{}).Status(ctx); !errors.Is(err, want) {
		t.Fatalf("%v, want the caller's own reason", err)
	}
}

func TestLostReplyIsAskedForWithTheSameKey(t *testing.T) {
	type sent struct{ key, body string }
	for name, lose := range map[string]http.HandlerFunc{
		"no reply": drop,
		"cut off": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "99")
			io.WriteString(w, "{")
		},
		"gateway error": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) },
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			got := make(chan sent, 8)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got <- sent{r.Header.Get("Idempotency-Key"), string(body)}
				if n.Add(1) < 3 {
					lose(w, r)
					return
				}
				reply(w, 201, api.SubmitResponse{QueueID: "queue-1", Replayed: true})
			})
			// The transport must not repeat requests by itself here.
			c := newClient(t, url, client.Options{HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
			resp, err := c.Submit(t.Context(), api.SubmitRequest{Prompt: "p"}, client.SubmitOptions{})
			if err != nil || resp.QueueID != "queue-1" {
				t.Fatal(resp, err)
			}
			first := <-got
			if first.key == "" || len(got) != 2 {
				t.Fatalf("key %q, %d more requests, want 2", first.key, len(got))
			}
			for range 2 {
				if again := <-got; again != first {
					t.Fatalf("repeated as %v, first was %v", again, first)
				}
			}
		})
	}
}

func TestLostRepliesAreBoundedAndLeaveTheKey(t *testing.T) {
	var n atomic.Int32
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.Add(1); drop(w, r) }))
	defer srv.Close()
	c := newClient(t, srv.URL, client.Options{
		Tries:      4,
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		OnRetry: func(error, time.Duration) {
			if n.Load() == 2 {
				srv.Listener.Close() // from here on the connection is refused
			}
		},
	})
	_, err := c.Retry(t.Context(), "queue-1", api.RetryRequest{}, client.SubmitOptions{IdempotencyKey: "mine"})
	var gone *client.UnreachableError
	if !errors.As(err, &gone) || !gone.Sent || gone.Key != "mine" || n.Load() != 2 {
		t.Fatalf("%v after %d requests: %+v", err, n.Load(), gone)
	}
}

func TestWaitOutlivesARestart(t *testing.T) {
	var asked atomic.Int32
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("wait") != "30s" {
			t.Errorf("wait=%q", r.URL.Query().Get("wait"))
		}
		switch asked.Add(1) {
		case 1: // early, and not ended
			reply(w, 200, api.Task{State: "working"})
		case 2:
			drop(w, r)
		case 3:
			reply(w, 503, api.Error{Error: "unavailable", Message: "shutting down"})
		default:
			reply(w, 200, api.Task{QueueID: "queue-1", State: "completed"})
		}
	})
	first := httptest.NewServer(handler)
	defer first.Close()
	addr := first.Listener.Addr().String()
	var tries int
	var next *http.Server
	c := newClient(t, first.URL, client.Options{OnRetry: func(error, time.Duration) {
		switch tries++; tries {
		case 1: // it shuts down
			first.Close()
		case 4: // it was refused twice, and comes back
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			next = &http.Server{Handler: handler}
			go next.Serve(l)
		}
	}})
	task, err := c.Wait(t.Context(), "queue-1")
	if next == nil {
		t.Fatalf("it was tried again %d times: the director was never gone", tries)
	}
	defer next.Close()
	if err != nil || task.State != "completed" || asked.Load() != 4 {
		t.Fatalf("%v %v after %d requests", task, err, asked.Load())
	}
}

func TestWaitGivesUp(t *testing.T) {
	gone := serve(t, func(w http.ResponseWriter, r *http.Request) {
		reply(w, 404, api.Error{Error: "not_found", Message: "no such task"})
	})
	if _, err := newClient(t, gone, client.Options{}).Wait(t.Context(), "x"); client.Code(err) != "not_found" {
		t.Fatal(err)
	}
	dead := serve(t, drop)
	if _, err := newClient(t, dead, client.Options{Patience: time.Nanosecond}).Wait(t.Context(), "x"); !client.IsUnreachable(err) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, dead, client.Options{OnRetry: func(error, time.Duration) { cancel() }})
	if _, err := c.Wait(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestAllHistoryGoesThroughThePages(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("before") {
		case "":
			reply(w, 200, api.History{Tasks: []api.Task{{QueueID: "a"}, {QueueID: "b"}}, Next: "c1"})
		case "c1":
			reply(w, 200, api.History{Tasks: []api.Task{{QueueID: "c"}}, Next: "c2"})
		default:
			reply(w, 503, api.Error{Error: "unavailable"})
		}
	})
	var got []string
	for task, err := range newClient(t, url, client.Options{}).AllHistory(t.Context(), client.HistoryOptions{State: "failed"}) {
		if err != nil {
			got = append(got, client.Code(err))
			continue
		}
		got = append(got, task.QueueID)
	}
	if fmt.Sprint(got) != "[a b c unavailable]" {
		t.Fatal(got)
	}
}
