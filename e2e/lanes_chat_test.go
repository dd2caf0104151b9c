package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// chatted is a chat as its caller knows it.
type chatted struct {
	key    string // in its message, and its Idempotency-Key
	agent  string
	onLost string
	id     string
	state  string // how it ended
	reason string
	answer string
}

// post sends a request to the director.
func (h *hammer) post(path, body string, headers ...string) (int, string, error) {
	return h.postFor(h.t.Context(), path, body, headers...)
}

func (h *hammer) postFor(ctx context.Context, path, body string, headers ...string) (int, string, error) {
	resp, err := h.send(ctx, path, body, headers...)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(said), err
}

func (h *hammer) send(ctx context.Context, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return hammerClient.Do(req)
}

// hammerClient keeps enough connections for all callers.
var hammerClient = &http.Client{Transport: asOwner{&http.Transport{MaxIdleConnsPerHost: 100}}}

// lane picks an agent, a plain one in one of ten cases: those are slow,
// because a director can only poll them.
func (h *hammer) lane(rng *rand.Rand) *role {
	for plain := rng.IntN(10) == 0; ; {
		r := h.lanes[rng.IntN(len(h.lanes))]
		if plain || !strings.HasPrefix(r.name, "plain") {
			return r
		}
	}
}

// chat repeats a request until it gets the final answer, always with the same
// key.
func (h *hammer) chat(n int) {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	c := &chatted{
		key: fmt.Sprintf("chat-%d", n), agent: h.lane(rng).name, onLost: []string{"fail", "requeue"}[n%2],
	}
	h.mu.Lock()
	h.chats[c.key] = c
	h.mu.Unlock()
	length := time.Duration(rng.Int64N(int64(h.length))).Round(time.Microsecond)
	body := fmt.Sprintf(`{"message": %q, "on_lost": %q, "overflow": %q, "wait_timeout": 60, "on_disconnect": %q}`,
		h.message(c, length), c.onLost, overflow(rng), []string{"continue", "continue", "cancel"}[rng.IntN(3)])
	way := rng.IntN(4)
	for began := time.Now(); c.state == "" && h.t.Context().Err() == nil; {
		if time.Since(began) > 3*long {
			h.t.Errorf("%s (%s) has not ended after %s", c.key, c.id, 3*long)
			return
		}
		h.try(c, way, body, rng)
		if way == 3 {
			way = 0 // it disconnected once
		}
	}
	h.ended.Add(1)
}

// overflow is usually wait; a call that rejects a busy agent is often
// refused.
func overflow(rng *rand.Rand) string {
	switch rng.IntN(20) {
	case 0:
		return "reject"
	case 1, 2, 3, 4:
		return "persist"
	}
	return "wait"
}

// message is a prompt for a fake agent and for the demo runner.
func (h *hammer) message(c *chatted, length time.Duration) string {
	if strings.HasPrefix(c.agent, "daemon") {
		return fmt.Sprintf("sleep %s %s", length, c.key)
	}
	return fmt.Sprintf("run %s %s", length, c.key)
}

// try makes one request: a plain one, an asynchronous one, a stream, or one
// that disconnects.
func (h *hammer) try(c *chatted, way int, body string, rng *rand.Rand) {
	ctx, headers := h.t.Context(), []string{"Idempotency-Key", c.key}
	switch way {
	case 1:
		headers = append(headers, "Prefer", "respond-async")
	case 2:
		headers = append(headers, "Accept", "text/event-stream")
	case 3:
		hangUp, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(40))*time.Millisecond)
		defer cancel()
		ctx = hangUp
	}
	resp, err := h.send(ctx, "/api/agents/"+c.agent+"/chat", body, headers...)
	if err != nil {
		time.Sleep(20 * time.Millisecond) // the director is down, or the caller disconnected
		return
	}
	defer resp.Body.Close()
	h.sameID(c, resp.Header.Get("X-Signalbox-Queue-Id"))
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		h.stream(c, resp.Body)
		return
	}
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	h.answered(c, resp.StatusCode, said, rng)
}

// sameID expects the same task for the same key.
func (h *hammer) sameID(c *chatted, id string) {
	if c.id == "" {
		c.id = id
	}
	if id != "" && id != c.id {
		h.t.Errorf("%s is %s and %s", c.key, c.id, id)
	}
}

func (h *hammer) answered(c *chatted, status int, said []byte, rng *rand.Rand) {
	switch status {
	case http.StatusOK:
		var v api.ChatResponse
		h.decode(c, said, &v)
		h.sameID(c, v.Execution.ID)
		c.state, c.answer = "completed", v.Response
		return
	case http.StatusAccepted:
		var v api.ChatAccepted
		h.decode(c, said, &v)
		h.sameID(c, v.Execution.ID)
		h.follow(c)
		return
	}
	var v api.ChatError
	h.decode(c, said, &v)
	if v.Message == "" {
		h.t.Errorf("%s: %d without a message: %s", c.key, status, said)
	}
	switch {
	case v.Execution != nil && v.State != "":
		h.sameID(c, v.Execution.ID)
		c.state, c.reason = v.State, v.Code
	case v.Execution != nil:
		h.follow(c) // the director is stopping; the task continues
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == http.StatusConflict && v.Code == "agent_busy":
		n, _ := h.refused.LoadOrStore(fmt.Sprintf("%d %s", status, v.Code), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		time.Sleep(time.Duration(20+rng.IntN(200)) * time.Millisecond)
	default:
		h.t.Errorf("%s: %d %s", c.key, status, said)
		c.state = "refused"
	}
}

func (h *hammer) decode(c *chatted, said []byte, into any) {
	if err := json.Unmarshal(said, into); err != nil {
		h.t.Errorf("%s: %v in %q", c.key, err, said)
		c.state = "unreadable"
	}
}

// follow waits until a task with a known ID has ended.
func (h *hammer) follow(c *chatted) {
	task, err := h.c.Wait(h.t.Context(), c.id)
	if err != nil {
		if h.t.Context().Err() == nil {
			h.t.Errorf("%s (%s): %v", c.key, c.id, err)
		}
		c.state = "unknown"
		return
	}
	c.state, c.reason = task.State, ""
	if task.State != "completed" {
		c.reason = task.Reason
	} else if task.Result != nil {
		c.answer = task.Result.Output
	}
}

// stream reads events until the final one; if the stream breaks, the caller
// repeats the request.
func (h *hammer) stream(c *chatted, from io.Reader) {
	name := ""
	for s := bufio.NewScanner(from); s.Scan(); {
		line := s.Text()
		if word, ok := strings.CutPrefix(line, "event: "); ok {
			name = word
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		switch name {
		case "accepted":
			var v api.ChatAccepted
			h.decode(c, []byte(data), &v)
			h.sameID(c, v.Execution.ID)
		case "result":
			h.answered(c, http.StatusOK, []byte(data), nil)
			return
		case "error":
			var v api.ChatError
			h.decode(c, []byte(data), &v)
			if c.state = v.State; c.state != "" {
				c.reason = v.Code
			}
			return
		}
	}
}
