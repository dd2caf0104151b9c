package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// A slow header keeps a connection open only for a limited time.
func TestAttackSlowHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		apitest.WriteString(t, c, "GET /status HTTP/1.1\r\nHost: localhost\r\nX-")
		begun := time.Now()
		io.Copy(io.Discard, c)
		if took := time.Since(begun); took > httpapi.HeaderTimeout {
			t.Errorf("the connection was held for %s", took)
		}
		stop()
	})
}

func TestAttackSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		p, stop := apitest.ServePipes(t, b)
		for _, start := range []string{
			"POST /api/queue/task HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
			"GET /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		} {
			c := p.Dial(t)
			apitest.WriteString(t, c, start)
			begun := time.Now()
			io.Copy(io.Discard, c)
			if took := time.Since(begun); took > httpapi.BodyTimeout+time.Second {
				t.Errorf("the connection was held for %s", took)
			}
		}
		stop()
	})
}

func TestAttackHugeHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		go fmt.Fprintf(c, "GET /status HTTP/1.1\r\nHost: localhost\r\nX-A: %s\r\n\r\n", strings.Repeat("a", 2*httpapi.MaxHeader))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%v, %v", resp, err)
		}
		c.Close()
		stop()
	})
}

// A long poll survives all timeouts of the server, and ends with the director.
func TestLongPollSurvivesAndEndsWithTheDirector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		p, stop := apitest.ServePipes(t, b)
		id := b.Submit(`{"prompt":"p"}`).QueueID
		c := p.Dial(t)
		defer c.Close()
		apitest.WriteString(t, c, "GET /api/queue/"+id+"?wait=5m HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answered := make(chan string, 1)
		go func() {
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				answered <- err.Error()
				return
			}
			resp.Body.Close()
			answered <- resp.Status
		}()
		time.Sleep(4 * time.Minute)
		select {
		case got := <-answered:
			t.Fatalf("it ended early: %s", got)
		default:
		}
		stop()
		if got := <-answered; got != "200 OK" {
			t.Errorf("%s", got)
		}
	})
}

// A stream ends cleanly when the director stops.
func TestStreamsEndCleanlyOnShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		defer c.Close()
		apitest.WriteString(t, c, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, resp.Body)
			ended <- err
		}()
		time.Sleep(time.Hour)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the stream was cut: %v", err)
		}
		if b.Server.OpenStreams() != 0 {
			t.Error("a stream is still counted")
		}
	})
}

func TestDraining(t *testing.T) {
	b := apitest.New(t)
	b.Do("GET", "/readyz", "").Want(t, http.StatusOK, nil)
	b.Server.SetDraining(true)
	e := b.Do("GET", "/readyz", "").WantError(t, http.StatusServiceUnavailable, signalbox.CodeUnavailable)
	if !strings.Contains(e.Message, "draining") || !e.Retryable || e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	b.Do("GET", "/healthz", "").Want(t, http.StatusOK, nil)
	b.Submit(`{"prompt":"stored all the same"}`)
	var s api.Status
	b.Do("GET", "/status", "").Want(t, http.StatusOK, &s)
	if s.State != "draining" || s.Queue.Depth != 1 {
		t.Errorf("%+v", s)
	}
	b.Server.SetDraining(false)
	b.Do("GET", "/readyz", "").Want(t, http.StatusOK, nil)
}

// If the store is gone, the answer is a 5xx without internal text, never a success.
func TestADeadStore(t *testing.T) {
	b := apitest.New(t)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	if err := b.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"POST", "/api/queue/task", `{"prompt":"p"}`}, {"POST", "/api/task", `{"prompt":"p"}`}, {"GET", "/api/queue", ""}, {"GET", "/api/queue/" + id, ""},
		{"POST", "/api/queue/" + id + "/cancel", ""}, {"GET", "/api/history", ""}, {"GET", "/api/events", ""}, {"GET", "/readyz", ""}, {"GET", "/status", ""}, {"POST", "/api/queue/pause", ""},
	} {
		if got := b.Do(c[0], c[1], c[2]); got.StatusCode < 500 {
			t.Errorf("%s %s: %d %s", c[0], c[1], got.StatusCode, got.Body)
		}
	}
	b.Do("GET", "/healthz", "").Want(t, http.StatusOK, nil)
}
