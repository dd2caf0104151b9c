package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

func (c *child) ask(ctx context.Context, f agentFile) (s api.AgentStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return s, askAgent(ctx, f, http.MethodGet, "/status", nil, &s)
}

// agentRefused is an answer of an agent other than success.
type agentRefused struct{ status int }

func (e *agentRefused) Error() string { return fmt.Sprintf("it answered %d", e.status) }

// askAgent makes one request to a child.
func askAgent(ctx context.Context, f agentFile, method, path string, body, answer any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, f.URL+path, &sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.Token)
	req.Header.Set("Content-Type", "application/json")
	asking := &http.Client{Transport: handshake.ToAgent(&http.Transport{DisableKeepAlives: true}, f.URL, f.Token, f.Proof)}
	resp, err := asking.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return &agentRefused{resp.StatusCode}
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
