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

// post asks the director for something.
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

// lane picks one, of the plain ones one in ten: they are slow, because a
// director can only ask them now and then whether they are done.
func (h *hammer) lane(rng *rand.Rand) *role {
	for plain := rng.IntN(10) == 0; ; {
		r := h.lanes[rng.IntN(len(h.lanes))]
		if plain || !strings.HasPrefix(r.name, "plain") {
			return r
		}
	}
}

// chat asks until there is an answer that is the end, always with the same
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
			h.t.Errorf("%s (%s) has no end after %s", c.key, c.id, 3*long)
			return
		}
		h.try(c, way, body, rng)
		if way == 3 {
			way = 0 // it hung up once
		}
	}
	h.ended.Add(1)
}

// overflow is mostly wait; a call that rejects a busy agent is refused often.
func overflow(rng *rand.Rand) string {
	switch rng.IntN(20) {
	case 0:
		return "reject"
	case 1, 2, 3, 4:
		return "persist"
	}
	return "wait"
}

// message is what a fake agent and the demo runner understand.
func (h *hammer) message(c *chatted, length time.Duration) string {
	if strings.HasPrefix(c.agent, "daemon") {
		return fmt.Sprintf("sleep %s %s", length, c.key)
	}
	return fmt.Sprintf("run %s %s", length, c.key)
}

// try asks once: with a plain request, asynchronously, as a stream, or as one
// who hangs up.
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
		time.Sleep(20 * time.Millisecond) // the director is down, or the caller hung up
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

// sameID wants one key to be one task.
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
		h.follow(c) // the director stops; the task goes on
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

// follow waits for the end of a task whose id is known.
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

// stream reads events until the end is among them; where the stream breaks,
// the caller asks again.
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
