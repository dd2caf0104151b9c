package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentaddr"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Reasons why a terminal ends. Their texts are shown to the user.
var (
	errClientLeft = errors.New("the user closed it")
	errStopping   = errors.New("the director stops")
	errCrowded    = errors.New("this connection had sent no ticket when too many others came: connect again")
	errRevoked    = errors.New("the token or login that opened the terminal is no longer valid")
	errAgentLost  = errors.New("the connection to the agent was lost")
	errBadTicket  = errors.New("the ticket is not valid: a ticket opens one terminal of the agent that it was made for, once, within 30 s; request another")
)

// session is one connection of a user, from its ticket to its end.
type session struct {
	t      *Terminals
	r      *http.Request
	agent  signalbox.Agent
	client *client
	up     atomic.Int64 // bytes from the user
	down   atomic.Int64 // bytes to the user
}

func (s *session) serve(wait context.Context, proved func()) {
	first, read, err := s.client.auth(wait, s.t.limits.auth)
	proved()
	if err == nil {
		err = s.admit(first)
	} else {
		s.client.tell(err)
	}
	s.client.finish(err)
	<-read
}

// admit opens a terminal if the ticket is valid. It returns when the terminal has ended and
// the user was told.
func (s *session) admit(first api.TerminalMessage) error {
	err := s.open(first)
	s.client.tell(err)
	return err
}

func (s *session) open(first api.TerminalMessage) error {
	who, ok := s.t.redeem(first.Token, s.r.PathValue("name"))
	if named := s.t.cfg.Login(s.r); named != "" && named != who.Key() {
		ok = false // the browser is logged in as another user
	}
	if !ok {
		return errBadTicket
	}
	if !s.t.cfg.Identity.InForce(who) {
		return errRevoked
	}
	var err error
	if s.agent, err = s.t.cfg.Engine.Agent(s.r.Context(), s.r.PathValue("name")); err == nil {
		err = s.t.ready(s.agent)
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(s.t.cfg.Life)
	defer stop(nil)
	defer s.t.cfg.Hold(ctx, who, func() { stop(errRevoked) })()
	o := &open{who: who, agent: s.agent.Name, since: s.t.cfg.Engine.Now().UTC(), stop: stop}
	if err := s.t.claim(o); err != nil {
		return err
	}
	defer s.t.release(o)
	return s.run(ctx, o, first)
}

// run connects to the agent and copies data until the terminal ends. It records the start
// and the end in the audit log.
func (s *session) run(ctx context.Context, o *open, first api.TerminalMessage) error {
	agent, err := s.dial(ctx, o.who, first)
	row := signalbox.Audit{EventType: "terminal", Action: "open", AgentName: s.agent.Name, Resource: "agent:" + s.agent.Name}
	if err != nil {
		row.Result, row.Details = signalbox.AuditFailed, signalbox.AuditDetails(map[string]any{"error": err.Error()})
		if noted := s.t.cfg.Audit(s.r, o.who, row); noted != nil {
			s.t.cfg.Log.Error("terminal not written to the audit log", "error", noted)
		}
		return err
	}
	defer agent.CloseNow() //nolint:errcheck // the terminal has ended
	if err := s.t.cfg.Audit(s.r, o.who, row); err != nil {
		s.t.cfg.Log.Error("terminal not opened: not written to the audit log", "error", err)
		return errors.New("the audit log could not be written, so the terminal was not opened")
	}
	began := time.Now()
	end := s.carry(ctx, o, agent)
	row.Action, row.Details = "close", signalbox.AuditDetails(map[string]any{
		"duration_seconds": time.Since(began).Round(time.Millisecond).Seconds(), "bytes_in": s.up.Load(), "bytes_out": s.down.Load(), "why": endText(end),
	})
	if err := s.t.cfg.Audit(s.r, o.who, row); err != nil {
		s.t.cfg.Log.Error("end of a terminal not written to the audit log", "error", err)
	}
	return end
}

func endText(end error) string {
	if end == nil {
		return "the program ended"
	}
	return end.Error()
}

// dial connects to the agent's terminal, only at its known address.
func (s *session) dial(ctx context.Context, who signalbox.Principal, first api.TerminalMessage) (*websocket.Conn, error) {
	token, err := s.t.cfg.Engine.AgentToken(s.agent)
	if err != nil {
		return nil, err
	}
	q := url.Values{"by": {httpio.Clip(who.String())}}
	for name, n := range map[string]int{"cols": first.Cols, "rows": first.Rows} {
		if n != 0 { // without a size the agent uses its default
			q.Set(name, strconv.Itoa(n))
		}
	}
	dialing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, resp, err := websocket.Dial(dialing, strings.TrimRight(s.agent.URL, "/")+"/terminal?"+q.Encode(), &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport: handshake.ToAgent(agentClient.Transport, s.agent.URL, token, s.agent.Proof), CheckRedirect: agentClient.CheckRedirect,
		}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	switch {
	case err != nil && ctx.Err() != nil: // not an error of the agent
		return nil, s.whyOver(ctx)
	case err != nil:
		return nil, fmt.Errorf("agent %s: %s", s.agent.Name, refusal(resp, err))
	}
	conn.SetReadLimit(maxMessage)
	return conn, nil
}

// agentClient connects like the dispatcher: to the configured address, without proxies and
// redirects, and to no address that an agent may not have.
var agentClient = &http.Client{
	Transport: &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second, Control: agentaddr.Control(true)}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// refusal returns the reason why an agent did not open a terminal.
func refusal(resp *http.Response, err error) string {
	if resp == nil || resp.Body == nil {
		return "it does not answer: " + httpio.Clip(err.Error())
	}
	defer resp.Body.Close()
	var said api.AgentRefusal
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1024)) // as far as it was received
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		return httpio.Clip(said.Message)
	}
	return fmt.Sprintf("it opens no terminal (status %d)", resp.StatusCode)
}

// carry passes messages both ways until one side ends or the terminal must end. It returns
// nil if the agent itself has sent the last message.
func (s *session) carry(ctx context.Context, o *open, agent *websocket.Conn) error {
	limits := s.t.limits
	ctx, cancel := context.WithTimeoutCause(ctx, limits.whole, fmt.Errorf("the terminal was open for %s, the maximum", limits.whole))
	defer cancel()
	writing, cut := context.WithCancel(context.Background())
	defer cut()
	sent, got := make(chan error, 1), make(chan error, 1)
	go func() { sent <- s.fromClient(agent) }()
	go func() { got <- s.fromAgent(writing, agent) }()
	look := time.Tick(limits.look)
	var end error
	for on := true; on; {
		select {
		case end = <-sent:
			sent, on = nil, false
		case end = <-got:
			got, on = nil, false
		case <-ctx.Done():
			end, on = s.whyOver(ctx), false
		case <-look:
			s.t.reviewOne(o)
			go s.ping()
		}
	}
	_ = agent.CloseNow() // the agent ends what runs there
	if got != nil {
		limit := time.AfterFunc(lastWordTimeout, cut) // disconnects a client that does not read
		defer limit.Stop()
		<-got //nolint:errcheck // end has the reason
	}
	return end
}

// whyOver says why the context of a terminal has ended.
func (s *session) whyOver(ctx context.Context) error {
	if s.t.cfg.Life.Err() != nil {
		return errStopping
	}
	return context.Cause(ctx)
}

// ping keeps proxies from closing an idle connection. A missing answer means nothing: a
// slow reader answers late.
func (s *session) ping() {
	ctx, cancel := context.WithTimeout(s.t.cfg.Life, s.t.limits.look)
	defer cancel()
	_ = s.client.conn.Ping(ctx)
}

// fromClient passes on what the user sends, until the connection ends.
func (s *session) fromClient(agent *websocket.Conn) error {
	for {
		m := s.client.read()
		if m.err != nil {
			return errClientLeft
		}
		s.up.Add(int64(len(m.data)))
		if err := agent.Write(context.Background(), m.kind, m.data); err != nil {
			return s.drain()
		}
	}
}

// drain reads until the client's connection ends, while the agent is closing.
func (s *session) drain() error {
	for {
		if m := s.client.read(); m.err != nil {
			return errClientLeft
		}
	}
}

// fromAgent passes on the output of the terminal. A client that does not read blocks the
// agent: only one message is buffered here.
func (s *session) fromAgent(writing context.Context, agent *websocket.Conn) error {
	last := false
	for {
		kind, data, err := agent.Read(context.Background())
		switch {
		case err == nil:
		case last || websocket.CloseStatus(err) == websocket.StatusNormalClosure:
			return nil
		default:
			return errAgentLost
		}
		if kind == websocket.MessageText {
			var m api.TerminalMessage
			last = json.Unmarshal(data, &m) == nil && (m.Type == "exit" || m.Type == "error")
		}
		s.down.Add(int64(len(data)))
		if err := s.client.conn.Write(writing, kind, data); err != nil {
			return errClientLeft
		}
	}
}
