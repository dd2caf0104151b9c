package llmtest

import (
	"bytes"
	"io"
	"net/http"
)

// hanging is a comment of the protocol, after which nothing more is sent.
const hanging = ": nothing more\n\n"

// watch notices when a client has processed everything before the end of a
// hanging answer: only then does it read on.
type watch struct {
	*http.Transport
	s *Server
}

func (w watch) RoundTrip(q *http.Request) (*http.Response, error) {
	res, err := w.Transport.RoundTrip(q)
	if res != nil {
		res.Body = &watched{ReadCloser: res.Body, s: w.s}
	}
	return res, err
}

type watched struct {
	io.ReadCloser
	s    *Server
	tail []byte
}

func (b *watched) Read(p []byte) (int, error) {
	if bytes.HasSuffix(b.tail, []byte(hanging)) {
		b.s.hung()
	}
	n, err := b.ReadCloser.Read(p)
	b.tail = append(b.tail, p[:n]...)
	b.tail = b.tail[max(0, len(b.tail)-len(hanging)):]
	return n, err
}

// hung closes the channel of the hanging answer.
func (s *Server) hung() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang != nil {
		close(s.hang)
		s.hang = nil
	}
}
