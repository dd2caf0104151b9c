// Package terminal opens terminals of agents in a browser: a ticket, asked for
// with a token, opens one WebSocket, which is carried to the agent and back.
//
// Tickets and open terminals live in memory, and end with the process. A
// terminal ends when its user loses the right to it.
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

// limits bound terminals. Tests shorten them.
type limits struct {
	ticket time.Duration // from the ticket to its use
	auth   time.Duration // from the connection to its first message
	whole  time.Duration // of one terminal
	look   time.Duration // between two looks whether its user still may; also the pings
}

var defaultLimits = limits{ticket: 30 * time.Second, auth: 10 * time.Second, whole: 12 * time.Hour, look: 30 * time.Second}

const (
	maxMessage = 64 << 10
	// lastWordTimeout bounds what is said to a client that may be gone.
	lastWordTimeout = 2 * time.Second
)

// Config is what terminals need of their director.
type Config struct {
	Enabled  bool // false: none is opened
	Engine   *engine.Engine
	Identity *identity.Keeper
	// Login is the key of the principal whose login a request shows; "": none.
	Login func(r *http.Request) string
	// Hold calls end when the principal loses its rights, until release is called
	// or ctx ends.
	Hold func(ctx context.Context, who signalbox.Principal, end func()) (release func())
	// Audit writes a row about what who did.
	Audit func(r *http.Request, who signalbox.Principal, row signalbox.Audit) error
	Log   *slog.Logger
	Life  context.Context // all terminals end with it
}

// Terminals are the terminals of a director's agents: tickets, and WebSockets
// between a browser and an agent.
type Terminals struct {
	cfg Config
	table
}

// New has none open.
func New(cfg Config) *Terminals {
	t := &Terminals{cfg: cfg}
	t.table.init(cfg.Engine.Now, cfg.Engine.AgentChanged)
	cfg.Identity.OnChange(t.review)
	return t
}

// Ticket makes a ticket for a terminal of an agent.
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
	return signalbox.Errorf(signalbox.CodeConflict, "you have had a terminal of agent %s open since %s, and there is one for each user and agent: close that one first",
		agent, since.UTC().Format(time.RFC3339))
}

// ready refuses an agent of which no terminal can be opened now.
func (t *Terminals) ready(row signalbox.Agent) error {
	live, _ := t.cfg.Engine.LiveAgent(row.Name)
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

// Enabled says why the director opens no terminals; nil: it does.
func (t *Terminals) Enabled() error {
	if t.cfg.Enabled {
		return nil
	}
	return httpio.Refuse(signalbox.CodeUnsupported, "start the director with --terminal, or terminal: true in its configuration",
		"this director opens no terminals")
}

// Serve answers with the WebSocket. Who asks is proved by the ticket in its first
// message, and nothing is said about the agent before.
func (t *Terminals) Serve(w http.ResponseWriter, r *http.Request) {
	wait, proved, leave := t.enter(t.cfg.Life)
	defer leave()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer conn.CloseNow() //nolint:errcheck // it is over
	conn.SetReadLimit(maxMessage)
	s := &session{t: t, r: r, client: newClient(conn)}
	s.serve(wait, proved)
}

// review ends those whose users may no longer have them.
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

// client is the side of a terminal at which a person is. Its reads end
// with the connection alone: a read that is cut short would cut the connection,
// and the last word could not be said.
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

// auth waits for the first message. done is closed when nothing reads from
// the client any more.
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
		return m, over, errors.New("no ticket came within " + limit.String())
	case <-wait.Done():
		if errors.Is(context.Cause(wait), errCrowded) {
			return m, over, errCrowded
		}
		return m, over, errStopping
	}
}

// tell says why a terminal ends, to a client that has not heard it.
func (c *client) tell(why error) {
	if why != nil && !errors.Is(why, errClientLeft) {
		_ = c.say(api.TerminalMessage{Type: "error", Reason: why.Error()}) // it may be gone by now
	}
}

// finish closes; that takes some seconds where the client does not answer.
func (c *client) finish(why error) {
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

func (c *client) say(m api.TerminalMessage) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWordTimeout)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, data)
}

// parseFirst reads the first message of a client.
func parseFirst(data []byte) (m api.TerminalMessage, err error) {
	if json.Unmarshal(data, &m) != nil || m.Type != "auth" {
		return api.TerminalMessage{}, errors.New(`the first message must be {"type":"auth","token":TICKET,"cols":80,"rows":24}`)
	}
	return m, nil
}
