package client_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// Another program that listens on the port of a stopped director gets neither the
// token nor the prompt, and its answers are not accepted.
func TestAttackASquatterOfTheDirectorsPort(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	squatter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(strings.Builder)
		_ = r.Write(body)
		mu.Lock()
		heard = append(heard, body.String())
		mu.Unlock()
		reply(w, 201, api.SubmitResponse{QueueID: "queue-forged"})
	}))
	defer squatter.Close()
	c, err := client.New(squatter.URL, client.Options{Token: "the-token-of-the-owner"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	got, err := c.Submit(t.Context(), api.SubmitRequest{Prompt: "deploy it", Env: map[string]string{"KEY": "deploy-key"}}, client.SubmitOptions{})
	if client.Code(err) != client.CodeUnproved {
		t.Errorf("%+v, %v", got, err)
	}
	said := strings.Join(heard, "\n")
	for _, secret := range []string{"the-token-of-the-owner", "deploy"} {
		if strings.Contains(said, secret) {
			t.Errorf("it heard %q: %s", secret, said)
		}
	}
	if len(heard) == 0 {
		t.Error("it was asked for nothing, not even for a proof")
	}
}

// A connection is proved once, for all its requests.
func TestAConnectionIsProvedOnce(t *testing.T) {
	var mu sync.Mutex
	proofs, conns := 0, map[string]bool{}
	d := handshake.Serve("sesame", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		conns[r.RemoteAddr] = true
		mu.Unlock()
		reply(w, 200, api.Task{})
	}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == handshake.Path {
			mu.Lock()
			proofs++
			mu.Unlock()
		}
		d.ServeHTTP(w, r)
	}))
	defer srv.Close()
	for range 3 { // clients of one token share their connections
		c, err := client.New(srv.URL, client.Options{Token: "sesame"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		for range 5 {
			if _, err := c.Task(t.Context(), "queue-1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if proofs != 1 || len(conns) != 1 {
		t.Errorf("%d proofs on %d connections", proofs, len(conns))
	}
}

// The connections of a caller's own transport are proved too, and a director that
// asks to retry later does not count as another server.
func TestATransportOfTheCallersOwnIsProved(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(api.Error{Error: "unavailable"})
	}))
	defer busy.Close()
	dialled := 0
	c, err := client.New(busy.URL, client.Options{Token: "sesame", Tries: 1, HTTPClient: &http.Client{Transport: &http.Transport{
		Dial: func(network, addr string) (net.Conn, error) { dialled++; return net.Dial(network, addr) }, //nolint:staticcheck // callers may have it
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if _, err := c.Task(t.Context(), "queue-1"); !client.IsUnreachable(err) {
		t.Errorf("the error is %v", err)
	}
	if dialled == 0 {
		t.Error("its own way to connect was not taken")
	}
}
