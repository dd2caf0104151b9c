package director

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// maxPassedBody bounds the body of a request that is passed on.
const maxPassedBody = maxMCPBytes

// passOn hands a request to another director, which answers it: streams and
// WebSockets too. Where that director does not answer, the error says that what is
// with it.
func (d *Director) passOn(w http.ResponseWriter, r *http.Request, to store.Director, what string) error {
	target, err := url.Parse(to.URL)
	if err != nil {
		return unreached(to, what)
	}
	if hasBody(r) { // its deadline must not end what follows
		body, err := readBody(w, r, maxPassedBody)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	ctx, cancel := d.untilStopped(r.Context())
	defer cancel()
	c, id := callerOf(r), w.Header().Get(requestIDHeader)
	var failed error
	proxy := httputil.ReverseProxy{
		Transport:     d.far.client.Transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			// The origin was looked at here, where the browser's word for it fits.
			for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Cookie"} {
				p.Out.Header.Del(name)
			}
			d.sign(p.Out.Header, c)
			p.Out.Header.Set(requestIDHeader, id)
		},
		ModifyResponse: func(resp *http.Response) error {
			for name := range resp.Header { // the other director has set what every answer carries
				w.Header().Del(name)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(passedOn{w}, r.WithContext(ctx))
	if failed == nil || r.Context().Err() != nil {
		return nil
	}
	d.log.Warn("another director did not answer", "director", to.ID, "url", to.URL, "path", clip(r.URL.Path), "error", failed)
	return unreached(to, what)
}

// withoutBody is a request whose body was read, and holds nothing.
func withoutBody(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = http.NoBody, 0
	return r
}

// passedOn is the writer of an answer that is passed on: each write has its own
// deadline.
type passedOn struct{ http.ResponseWriter }

func (w passedOn) Write(b []byte) (int, error) {
	extendWrite(w.ResponseWriter)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w passedOn) Unwrap() http.ResponseWriter { return w.ResponseWriter }
