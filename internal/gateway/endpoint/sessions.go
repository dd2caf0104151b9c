package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// sessionPrefix separates MCP sessions from sessions of other frontends.
const sessionPrefix = "mcp:"

// sessions are the sessions of the older protocol.
type sessions struct {
	idle         time.Duration
	max, maxEach int
	ended        func(session string)
	mu           sync.Mutex
	all          map[string]*session
	closed       bool
	ends         sync.WaitGroup
}

// session belongs to the principal that opened it.
type session struct {
	id        string
	principal string
	sdk       *mcp.ServerSession
	open      map[*request]func()   // requests in flight and their cancel functions
	plain     map[jsonrpc.ID]func() // calls in flight that bypass the SDK
	lastUsed  time.Time
	expiry    *time.Timer // runs while no request is in flight
}

// open adds a session. At the limit it evicts an idle session; if all are in use, it fails.
func (t *sessions) open(principal string, ss *mcp.ServerSession) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("unavailable: the gateway is stopping")
	}
	if t.all[ss.ID()] != nil {
		return nil // a second initialize, which the SDK refuses
	}
	if err := t.makeRoom(principal); err != nil {
		return err
	}
	s := &session{id: ss.ID(), principal: principal, sdk: ss, open: map[*request]func(){}, plain: map[jsonrpc.ID]func(){}, lastUsed: time.Now()}
	s.expiry = time.AfterFunc(t.idle, func() { t.expire(s) })
	t.all[s.id] = s
	t.ends.Go(func() {
		_ = ss.Wait() // it does not matter how it ended
		t.mu.Lock()
		s.expiry.Stop()
		delete(t.all, s.id)
		t.mu.Unlock()
		t.ended(sessionPrefix + s.id)
	})
	return nil
}

// makeRoom evicts a session if needed. Without tokens all callers are one principal, which may
// then use the whole limit.
func (t *sessions) makeRoom(principal string) error {
	each := 0
	for _, s := range t.all {
		if s.principal == principal {
			each++
		}
	}
	if principal != "" && each >= t.maxEach {
		if !t.evict(func(s *session) bool { return s.principal == principal }) {
			return fmt.Errorf("unavailable: you have %d MCP sessions open, the most that one caller may have: end some (DELETE /mcp) or try again later", each)
		}
		return nil
	}
	if len(t.all) >= t.max && !t.evict(func(*session) bool { return true }) {
		return fmt.Errorf("unavailable: %d MCP sessions are open, the most there can be: try again later", len(t.all))
	}
	return nil
}

// evict ends the session that has been idle longest, among those that may allows. A 404 tells
// its client to begin a new session.
func (t *sessions) evict(may func(*session) bool) bool {
	var oldest *session
	for _, s := range t.all {
		if len(s.open) == 0 && may(s) && (oldest == nil || s.lastUsed.Before(oldest.lastUsed)) {
			oldest = s
		}
	}
	if oldest == nil || time.Since(oldest.lastUsed) < min(t.idle, minIdle) {
		return false
	}
	delete(t.all, oldest.id)
	go oldest.sdk.Close() //nolint:errcheck // its calls have ended: there is nothing to wait for
	return true
}

// minIdle is how long a session must have been idle before it can be evicted; shorter pauses
// between calls count as use.
const minIdle = time.Minute

func (t *sessions) expire(s *session) {
	t.mu.Lock()
	over := len(s.open) == 0
	t.mu.Unlock()
	if over {
		_ = s.sdk.Close() // later requests get a 404
	}
}

// join registers a request of a session, which stays alive at least until leave. A session of
// another principal is reported as not found.
func (t *sessions) join(id, principal string, r *request, end func()) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.all[id]
	if s == nil || s.principal != principal {
		return nil, false
	}
	s.open[r] = end
	s.expiry.Stop()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.open, r)
		s.lastUsed = time.Now()
		if len(s.open) == 0 && t.all[id] == s {
			s.expiry.Reset(t.idle)
		}
	}, true
}

// trackCall registers a call that bypasses the SDK, until done. An ID in use is refused.
func (t *sessions) trackCall(session string, id jsonrpc.ID, cancel func()) (done func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.all[session]
	if s == nil || s.plain[id] != nil {
		return func() {}, s == nil // if the session has ended, the call ends with its request
	}
	s.plain[id] = cancel
	return func() {
		t.mu.Lock()
		delete(s.plain, id)
		t.mu.Unlock()
	}, true
}

// cancel cancels a call that bypasses the SDK.
func (t *sessions) cancel(session string, id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.all[session]; s != nil && s.plain[id] != nil {
		s.plain[id]()
	}
}

// cancelRequests cancels the other requests of a session that its client
// ends.
func (t *sessions) cancelRequests(id string, but *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.all[id]; s != nil {
		for r, end := range s.open {
			if r != but {
				end()
			}
		}
	}
}

// close ends all sessions and waits until they have ended.
func (t *sessions) close() {
	t.mu.Lock()
	t.closed = true
	var open []*mcp.ServerSession
	for _, s := range t.all {
		for _, end := range s.open {
			end()
		}
		open = append(open, s.sdk)
	}
	t.mu.Unlock()
	for _, ss := range open {
		_ = ss.Close() // it waits for the calls, which were cancelled
	}
	t.ends.Wait()
}

// progressStep is the increment of progress while a call waits. The protocol requires
// increasing values, and those of the upstream, which often start at 1, are passed on
// unchanged.
const progressStep = 1e-6

// progress returns a function that reports progress to a client that sent a
// token.
func progress(token any, tell func(*mcp.ProgressNotificationParams)) func(gateway.Progress) {
	said, begun := 0.0, false
	return func(p gateway.Progress) {
		value := p.Progress
		if p.Position > 0 { // there is no total while a call waits
			value = said
		}
		if begun && value <= said {
			value = said + progressStep
		}
		begun, said = true, value
		tell(&mcp.ProgressNotificationParams{ProgressToken: token, Progress: value, Total: p.Total, Message: p.Message})
	}
}

// marshal encodes JSON without escaping <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
