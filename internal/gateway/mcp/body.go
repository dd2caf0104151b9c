package mcp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// body ends its request when it is closed.
type body struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// limited fails a body that is longer than it may be.
type limited struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("its answer is too long")
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

func success(status int) bool { return status >= 200 && status < 300 }

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

func (w *web) misread() *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeToolFailed, "The server %q answered with something that is no MCP message.", w.tap.name)
}

// refused is the fault of an HTTP status.
func (w *web) refused(status int) *signalbox.Error {
	code := signalbox.CodeToolFailed
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		code = signalbox.CodeToolDown
	}
	hint := ""
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = " Check the headers that are configured for it."
	}
	if success(status) {
		return w.misread()
	}
	return signalbox.Errorf(code, "The server %q answered HTTP %s to the call.%s", w.tap.name, statusText(status), hint)
}
