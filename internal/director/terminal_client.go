package director

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox/api"
)

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
	timer := time.NewTimer(limit)
	defer timer.Stop()
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
	case <-timer.C:
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
