package endpoint

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// tiny is by how much progress grows while a call waits in line: the protocol
// wants every value greater than the one before, and what the upstream says
// afterwards, often from 1 on, shall go out as it is.
const tiny = 1e-6

// progress hands on what is said of a call to a client that asked for it with
// a token; nil where it did not.
func (s *server) progress(ctx context.Context, r *mcp.CallToolRequest) func(gateway.Progress) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	said, begun := 0.0, false
	return func(p gateway.Progress) {
		value := p.Progress
		if p.Position > 0 { // of waiting nobody knows how far it is
			value = said
		}
		if begun && value <= said {
			value = said + tiny
		}
		begun, said = true, value
		// An error is that of a client that has gone, which ends the call itself.
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: value, Total: p.Total, Message: p.Message,
		})
	}
}

// marshal writes JSON without turning <, > and & into escapes: text shall
// arrive as it was written.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
