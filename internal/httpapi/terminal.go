package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// terminalLimits bound terminals. Tests shorten them.
type terminalLimits struct {
	ticket time.Duration // from the ticket to its use
	auth   time.Duration // from the connection to its first message
	whole  time.Duration // of one terminal
	look   time.Duration // between two looks whether its user still may; also the pings
}

var defaultTerminalLimits = terminalLimits{ticket: 30 * time.Second, auth: 10 * time.Second, whole: 12 * time.Hour, look: 30 * time.Second}

const (
	maxTerminalMessage = 64 << 10
	// lastWord bounds what is said to a client that may be gone.
	lastWord = 2 * time.Second
)

// openTerminal is POST /api/agents/{name}/terminal: a ticket, which opens one
// terminal. So no token stands in the address of a WebSocket, where a browser
// would have to put it.
func (d *Server) openTerminal(w http.ResponseWriter, r *http.Request) error {
	row, err := d.terminalAgent(r)
	if err != nil {
		return err
	}
	if holder, elsewhere := d.otherHolder(r.Context(), row.Name); elsewhere { // there it is known who has which terminal
		return d.passOn(w, withoutBody(r), holder, "agent "+row.Name)
	}
	if err := d.readyTerminal(row); err != nil {
		return err
	}
	who := callerOf(r).who
	if since, is := d.terms.isOpen(who, row.Name); is {
		return secondTerminal(row.Name, since)
	}
	secret, ends, err := d.terms.issue(who, row.Name)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusCreated, api.TerminalTicket{
		Ticket: secret, Agent: row.Name, URL: "/api/agents/" + row.Name + "/terminal", ExpiresAt: ends.UTC().Truncate(time.Millisecond),
	})
}

func secondTerminal(agent string, since time.Time) error {
	return signalbox.Errorf(signalbox.CodeConflict, "you have had a terminal of agent %s open since %s, and there is one for each user and agent: close that one first",
		agent, since.UTC().Format(time.RFC3339))
}

// terminalAgent returns an agent that the director may open terminals of.
func (d *Server) terminalAgent(r *http.Request) (signalbox.Agent, error) {
	row, err := d.agentRow(r.Context(), r.PathValue("name"))
	if err != nil {
		return row, err
	}
	return row, d.terminalsOn()
}

// readyTerminal refuses an agent of which no terminal can be opened now.
func (d *Server) readyTerminal(row signalbox.Agent) error {
	live, _ := d.engine.LiveAgent(row.Name)
	switch {
	case !live.Up:
		return httpio.Refuse(signalbox.CodeAgentDown, "start the agent again; signalbox agents shows which are there",
			"agent %s is not connected (%s)", row.Name, httpio.Clip(cmp.Or(live.Message, "not heard from yet")))
	case row.Source == signalbox.AgentPull:
		return httpio.Refuse(signalbox.CodeUnsupported, "run the agent where the director can connect to it, without --pull, to have a terminal",
			"agent %s asks for its tasks, and nobody can connect to it: it has no terminal", row.Name)
	case !live.Terminal:
		return httpio.Refuse(signalbox.CodeUnsupported, "start the agent with --terminal and a token (agent.terminal: true, agent.token)",
			"agent %s offers no terminal", row.Name)
	}
	return nil
}

func (d *Server) terminalsOn() error {
	if d.cfg.Terminal {
		return nil
	}
	return httpio.Refuse(signalbox.CodeUnsupported, "start the director with --terminal, or terminal: true in its configuration",
		"this director opens no terminals")
}

// terminal is GET /api/agents/{name}/terminal, the WebSocket. Who asks is
// proved by the ticket in its first message, and nothing is said about the
// agent before; a page of another site was refused already (checkOrigin).
func (d *Server) terminal(w http.ResponseWriter, r *http.Request) error {
	if err := d.terminalsOn(); err != nil {
		return err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return signalbox.Invalid("Upgrade", "a terminal is a WebSocket: ask for it with Connection: Upgrade and Upgrade: websocket")
	}
	if holder, elsewhere := d.otherHolder(r.Context(), r.PathValue("name")); elsewhere { // its ticket is from there
		return d.passOn(w, r, holder, "agent "+httpio.Clip(r.PathValue("name")))
	}
	wait, proved, leave := d.terms.enter(d.life)
	defer leave()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return nil //nolint:nilerr // it has answered
	}
	defer conn.CloseNow() //nolint:errcheck // it is over
	conn.SetReadLimit(maxTerminalMessage)
	s := &termSession{d: d, r: r, client: newTermClient(conn)}
	s.serve(wait, proved)
	return nil
}

// terminals lists the open ones of an agent, the oldest first.
func (d *Server) terminals(agent string) []api.AgentTerminal { return d.terms.list(agent) }

// reviewTerminals ends those whose users may no longer have them.
func (d *Server) reviewTerminals() {
	for _, o := range d.terms.all() {
		d.reviewTerminal(o)
	}
}

func (d *Server) reviewTerminal(o *openTerm) {
	if !d.identity.InForce(o.who) {
		o.stop(errRevoked)
	}
}

// termClient is the side of a terminal at which a person is. Its reads end
// with the connection alone: a read that is cut short would cut the connection,
// and the last word could not be said.
type termClient struct{ conn *websocket.Conn }

func newTermClient(conn *websocket.Conn) *termClient { return &termClient{conn: conn} }

type termMessage struct {
	kind websocket.MessageType
	data []byte
	err  error
}

func (c *termClient) read() termMessage {
	kind, data, err := c.conn.Read(context.Background())
	return termMessage{kind, data, err}
}

// auth waits for the first message. done is closed when nothing reads from
// the client any more.
func (c *termClient) auth(wait context.Context, limit time.Duration) (m api.TerminalMessage, done <-chan struct{}, err error) {
	first, over := make(chan termMessage, 1), make(chan struct{})
	go func() {
		defer close(over)
		first <- c.read()
	}()
	select {
	case got := <-first:
		if got.err != nil {
			return m, over, errClientLeft
		}
		if got.kind != websocket.MessageText {
			got.data = nil
		}
		m, err = firstWord(got.data)
		return m, over, err
	case <-time.After(limit):
		return m, over, errors.New("no ticket came within " + limit.String())
	case <-wait.Done():
		if errors.Is(context.Cause(wait), errCrowded) {
			return m, over, errCrowded
		}
		return m, over, errStopping
	}
}

// tell says why a terminal ends, to a client that has not heard it.
func (c *termClient) tell(why error) {
	if why != nil && !errors.Is(why, errClientLeft) {
		_ = c.say(api.TerminalMessage{Type: "error", Reason: why.Error()}) // it may be gone by now
	}
}

// finish closes; that takes some seconds where the client does not answer.
func (c *termClient) finish(why error) {
	if errors.Is(why, errCrowded) {
		_ = c.conn.CloseNow() // there are too many to wait for
		return
	}
	code := websocket.StatusNormalClosure
	if why != nil {
		code = websocket.StatusPolicyViolation
	}
	_ = c.conn.Close(code, "")
}

func (c *termClient) say(m api.TerminalMessage) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, data)
}

// firstWord reads the first message of a client.
func firstWord(data []byte) (m api.TerminalMessage, err error) {
	if json.Unmarshal(data, &m) != nil || m.Type != "auth" {
		return api.TerminalMessage{}, errors.New(`the first message must be {"type":"auth","token":TICKET,"cols":80,"rows":24}`)
	}
	return m, nil
}
