// Package terminal opens terminals of agents in a browser: a ticket, requested with a
// token, opens one WebSocket, which is connected to the agent.
//
// Tickets and open terminals are in memory and end with the process. A terminal ends when
// its user loses the right to it.
package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// limits are the time limits of terminals. Tests shorten them.
type limits struct {
	ticket time.Duration // from the ticket to its use
	auth   time.Duration // from the connection to its first message
	whole  time.Duration // maximum duration of a terminal
	look   time.Duration // interval of pings, and of checks whether the user still may
}

var defaultLimits = limits{ticket: 30 * time.Second, auth: 10 * time.Second, whole: 12 * time.Hour, look: 30 * time.Second}

const (
	maxMessage = 64 << 10
	// lastWordTimeout limits the last message to a client that may be gone.
	lastWordTimeout = 2 * time.Second
)

// Config has the dependencies of terminals.
type Config struct {
	Enabled  bool // false: no terminal can be opened
	Engine   *engine.Engine
	Identity *identity.Keeper
	// Login returns the key of the principal of a request's login; "": none.
	Login func(r *http.Request) string
	// Hold calls end when the principal loses its rights, until release is called
	// or ctx ends.
	Hold func(ctx context.Context, who signalbox.Principal, end func()) (release func())
	// Audit writes a row about an action of who.
	Audit func(r *http.Request, who signalbox.Principal, row signalbox.Audit) error
	Log   *slog.Logger
	Life  context.Context // ends all terminals
}

// Terminals are the terminals of a director's agents: tickets, and WebSockets
// between a browser and an agent.
type Terminals struct {
	cfg Config
	table
}

// New returns Terminals without open terminals.
func New(cfg Config) *Terminals {
	t := &Terminals{cfg: cfg}
	t.table.init(cfg.Engine.Now, cfg.Engine.AgentChanged)
	cfg.Identity.OnChange(t.review)
	return t
}

// Ticket creates a ticket for a terminal of an agent.
func (t *Terminals) Ticket(who signalbox.Principal, agent signalbox.Agent) (api.TerminalTicket, error) {
	if err := t.ready(agent); err != nil {
		return api.TerminalTicket{}, err
	}
	if since, is := t.isOpen(who, agent.Name); is {
		return api.TerminalTicket{}, alreadyOpen(agent.Name, since)
	}
	secret, ends, err := t.issue(who, agent.Name)
	if err != nil {
		return api.TerminalTicket{}, err
	}
	return api.TerminalTicket{
		Ticket: secret, Agent: agent.Name, URL: "/api/agents/" + agent.Name + "/terminal", ExpiresAt: ends.UTC().Truncate(time.Millisecond),
	}, nil
}

func alreadyOpen(agent string, since time.Time) error {
	return signalbox.Errorf(signalbox.CodeConflict, "you have had a terminal of agent %s open since %s, and a user may have one per agent: close that one first",
		agent, since.UTC().Format(time.RFC3339))
}

// ready returns an error if no terminal of the agent can be opened now.
func (t *Terminals) ready(row signalbox.Agent) error {
	live, _ := t.cfg.Engine.LiveAgent(row.Name)
	switch {
	case !live.Up:
		return httpio.Refuse(signalbox.CodeAgentDown, "start the agent again; signalbox agents shows which are connected",
			"agent %s is not connected (%s)", row.Name, httpio.Clip(cmp.Or(live.Message, "not heard from yet")))
	case row.Source == signalbox.AgentPull:
		return httpio.Refuse(signalbox.CodeUnsupported, "run the agent without --pull, where the director can connect to it, to have a terminal",
			"agent %s pulls its tasks and accepts no connections, so it has no terminal", row.Name)
	case !live.Terminal:
		return httpio.Refuse(signalbox.CodeUnsupported, "start the agent with --terminal and a token (agent.terminal: true, agent.token)",
			"agent %s offers no terminal", row.Name)
	}
	return nil
}

// Enabled returns an error if the director opens no terminals.
func (t *Terminals) Enabled() error {
	if t.cfg.Enabled {
		return nil
	}
	return httpio.Refuse(signalbox.CodeUnsupported, "start the director with --terminal, or terminal: true in its configuration",
		"this director opens no terminals")
}

// Serve answers with the WebSocket. The ticket in the first message authenticates the
// caller; before that nothing about the agent is revealed.
func (t *Terminals) Serve(w http.ResponseWriter, r *http.Request) {
	wait, proved, leave := t.enter(t.cfg.Life)
	defer leave()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // the connection has ended
	conn.SetReadLimit(maxMessage)
	s := &session{t: t, r: r, client: newClient(conn)}
	s.serve(wait, proved)
}

// review ends the terminals of users who have lost the right to them.
func (t *Terminals) review() {
	for _, o := range t.all() {
		t.reviewOne(o)
	}
}

func (t *Terminals) reviewOne(o *open) {
	if !t.cfg.Identity.InForce(o.who) {
		o.stop(errRevoked)
	}
}

// client is the user's side of a terminal. Its reads end only with the connection: canceling
// a read would close the connection, and the last message could not be sent.
type client struct{ conn *websocket.Conn }

func newClient(conn *websocket.Conn) *client { return &client{conn: conn} }

type message struct {
	kind websocket.MessageType
	data []byte
	err  error
}

func (c *client) read() message {
	kind, data, err := c.conn.Read(context.Background())
	return message{kind, data, err}
}

// auth waits for the first message. done is closed when nothing reads from the client any
// more.
func (c *client) auth(wait context.Context, limit time.Duration) (m api.TerminalMessage, done <-chan struct{}, err error) {
	first, over := make(chan message, 1), make(chan struct{})
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
		m, err = parseFirst(got.data)
		return m, over, err
	case <-time.After(limit):
		return m, over, errors.New("no ticket arrived within " + limit.String())
	case <-wait.Done():
		if errors.Is(context.Cause(wait), errCrowded) {
			return m, over, errCrowded
		}
		return m, over, errStopping
	}
}

// tell sends the reason for the end of a terminal to a client that does not know it.
func (c *client) tell(why error) {
	if why != nil && !errors.Is(why, errClientLeft) {
		_ = c.say(api.TerminalMessage{Type: "error", Reason: why.Error()}) // the client may be gone
	}
}

// finish closes the connection, which takes some seconds if the client does not answer.
func (c *client) finish(why error) {
	if errors.Is(why, errCrowded) {
		_ = c.conn.CloseNow() // too many such connections to wait for
		return
	}
	code := websocket.StatusNormalClosure
	if why != nil {
		code = websocket.StatusPolicyViolation
	}
	_ = c.conn.Close(code, "")
}

func (c *client) say(m api.TerminalMessage) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWordTimeout)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, data)
}

// parseFirst parses the first message of a client.
func parseFirst(data []byte) (m api.TerminalMessage, err error) {
	if json.Unmarshal(data, &m) != nil || m.Type != "auth" {
		return api.TerminalMessage{}, errors.New(`the first message must be {"type":"auth","token":TICKET,"cols":80,"rows":24}`)
	}
	return m, nil
}
