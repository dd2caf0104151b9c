package director

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// mcpPath is that of the MCP server, whose bodies have rules of their own.
const mcpPath = "/mcp"

// maxMCPBytes bounds a message to the MCP server: arguments may hold whole files.
const maxMCPBytes = 4 << 20

// mcp is all methods of /mcp. The gate has been passed; from here the protocol
// has its own rules and its own errors.
func (d *Director) mcp(w http.ResponseWriter, r *http.Request) error {
	if d.cfg.MCP == nil {
		return errNoTools()
	}
	who, err := d.toolCaller(r, "")
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet { // it stays open for as long as the client likes
		leave, err := d.reserveStream()
		if err != nil {
			return err
		}
		defer leave()
	}
	if hasBody(r) {
		// The SDK would read it under the deadline for bodies and leave that in
		// force, which would end the call when it is over.
		body, err := readMCP(w, r)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	ctx, cancel := d.untilStopped(gateway.WithTrace(r.Context(), r.Header))
	defer cancel()
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that buffers would hold events back
	d.cfg.MCP.ServeHTTP(w, r.WithContext(gateway.WithCaller(ctx, who)))
	return nil
}

func readMCP(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxMCPBytes {
		return nil, tooLargeMCP()
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMCPBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, tooLargeMCP()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body did not arrive within %s", bodyTimeout)
	case err != nil:
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body could not be read to its end")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return data, nil
}

func tooLargeMCP() error {
	return signalbox.Errorf(signalbox.CodeTooLarge, "the message is larger than %d bytes, the most that is allowed", maxMCPBytes)
}
