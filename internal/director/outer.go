package director

import (
	"context"
	"crypto/rand"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpguard"
)

const requestIDHeader = "X-Request-Id"

// Limits of a request beyond its body.
const (
	maxURLBytes  = 8 << 10
	bodyTimeout  = 30 * time.Second // for the whole body to arrive
	writeTimeout = 30 * time.Second // for one write to be taken
)

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// outer is what every request passes first, whatever its path.
func (d *Director) outer(mux *http.ServeMux) http.Handler {
	mux.HandleFunc(anyPath, func(w http.ResponseWriter, r *http.Request) { d.unmatched(w, r, allowed(mux, r)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, begun: time.Now()}
		defer d.finish(rec, r)
		d.setHeaders(rec, r)
		if hasBody(r) {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // slowloris; not possible on every writer
		}
		if err := d.screen(r); err != nil {
			d.answerError(rec, r, err)
			return
		}
		mux.ServeHTTP(rec, r)
	})
}

// anyPath is the pattern of what no route takes.
const anyPath = "/"

// allowed are the methods that the path of a request is there for, as the header Allow
// has them.
func allowed(mux *http.ServeMux, r *http.Request) string {
	methods := []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut}
	return strings.Join(slices.DeleteFunc(methods, func(method string) bool {
		other := *r
		other.Method = method
		_, pattern := mux.Handler(&other)
		return pattern == anyPath
	}), ", ")
}

// setHeaders sets the request id and the headers that every answer carries:
// an API answer is no page, is not to be sniffed, framed or kept.
func (d *Director) setHeaders(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(requestIDHeader)
	if !requestIDForm.MatchString(id) {
		id = "req-" + strings.ToLower(rand.Text()[:20])
	}
	h := w.Header()
	h.Set(requestIDHeader, id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// screen refuses what no route is to see.
func (d *Director) screen(r *http.Request) error {
	if len(r.RequestURI) > maxURLBytes {
		return signalbox.Errorf(signalbox.CodeTooLarge, "the URL has %d bytes; at most %d are allowed", len(r.RequestURI), maxURLBytes)
	}
	if !d.hosts.Allow(r.Host) {
		return refuse(signalbox.CodeForbidden, "ask under a loopback name, or add the name to hosts in the director's configuration",
			"the director does not answer under the name %q", clip(r.Host))
	}
	if err := d.checkOrigin(r); err != nil {
		return err
	}
	if r.URL.Path != cleanPath(r.URL.Path) {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is nothing at %s", clip(r.URL.Path))
	}
	return nil
}

// cleanPath keeps a slash at the end, as the mux does.
func cleanPath(p string) string {
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// finish counts the request and turns a panic into an answer.
func (d *Director) finish(w *recorder, r *http.Request) {
	if cause := recover(); cause != nil {
		if cause == http.ErrAbortHandler { //nolint:errorlint // a panic's value, which nobody wraps
			panic(cause)
		}
		d.log.Error("a handler panicked", "request_id", w.Header().Get(requestIDHeader), "path", clip(r.URL.Path), "error", cause, "stack", string(debug.Stack()))
		begun := w.status != 0
		d.answerError(w, r, signalbox.Errorf(signalbox.CodeInternal, "panic"))
		if begun {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
	}
	switch {
	case w.status != 0:
	case r.Context().Err() != nil:
		w.status = statusGone
	default:
		w.status = http.StatusOK
	}
	d.cfg.Metrics.Request(w.route, w.status, w.took(r))
}

// took is how long the answer took; -1 where that is for the caller to say: of
// streams, and of polls that wait.
func (w *recorder) took(r *http.Request) time.Duration {
	if w.status == http.StatusSwitchingProtocols || strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || strings.Contains(r.URL.RawQuery, "wait=") {
		return -1
	}
	return time.Since(w.begun)
}

// statusGone counts callers that went away before their answer. Nobody is
// sent it.
const statusGone = 499

// recorder notes what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	route  string
	begun  time.Time
}

func (w *recorder) WriteHeader(status int) {
	w.begins(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.begins(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// begins notes the first status, and bounds how long an answer may take to be
// taken, whoever writes it; one that lasts extends that for each of its writes.
func (w *recorder) begins(status int) {
	if w.status == 0 {
		w.status = status
		extendWrite(w.ResponseWriter)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func noteRoute(w http.ResponseWriter, name string) {
	if rec, ok := w.(*recorder); ok {
		rec.route = name
	}
}

// extendWrite bounds how long the next write may take. A writer without
// deadlines, as in tests, has none to bound.
func extendWrite(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// hostsOf are the names of a director that listens at addr.
func hostsOf(addr string, extra []string) httpguard.Hosts {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return httpguard.NewHosts(false, extra...)
	}
	ip, err := netip.ParseAddr(host)
	if host != "" {
		extra = append(slices.Clone(extra), host)
	}
	return httpguard.NewHosts(host == "" || err == nil && ip.IsUnspecified(), extra...)
}

// checkOrigin refuses what a page of another site makes a browser send:
// writes by http.CrossOriginProtection, and reads that are no navigation,
// whose answers that page could not read but whose streams it could hold
// open.
func (d *Director) checkOrigin(r *http.Request) error {
	foreign := d.cross.Check(r) != nil
	if !foreign && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		foreign = r.Header.Get("Sec-Fetch-Site") == "cross-site" || foreignOrigin(r)
	}
	if foreign {
		return refuse(signalbox.CodeForbidden, "pages of other sites may not use the director; ask from a program, or from the director's own pages",
			"the request comes from a page of another site")
	}
	return nil
}

func foreignOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host // "null" has no host
}

func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// checkMedia asks writes for JSON. A form, which any page can make a browser
// send, is refused even without a body.
func checkMedia(r *http.Request) error {
	if !isWrite(r) {
		return nil
	}
	given := r.Header.Values("Content-Type")
	if len(given) == 0 && !hasBody(r) {
		return nil
	}
	if len(given) == 1 {
		media, params, err := mime.ParseMediaType(given[0])
		charset := strings.ToLower(params["charset"])
		if err == nil && media == "application/json" && (charset == "" || charset == "utf-8") {
			return nil
		}
	}
	if len(given) == 0 {
		return signalbox.Errorf(signalbox.CodeUnsupportedMedia, "the body has no content type; it must be application/json")
	}
	return signalbox.Errorf(signalbox.CodeUnsupportedMedia, "the content type must be application/json, not %q", clip(strings.Join(given, ", ")))
}

// Traces knows of which trace an execution is a part; *telemetry.Traces does.
type Traces interface {
	// Context puts the trace of an execution into ctx, unless it has one.
	Context(ctx context.Context, queueID string) context.Context
}

// traced takes over the trace of the caller, for what the request makes.
func traced(r *http.Request) *http.Request {
	if r.Header.Get("Traceparent") == "" {
		return r
	}
	return r.WithContext(gateway.WithTrace(r.Context(), r.Header))
}

// within makes what is called in an execution a part of its trace, where the
// caller names no trace itself.
func (d *Director) within(ctx context.Context, who gateway.Caller) context.Context {
	if d.cfg.Traces == nil {
		return ctx
	}
	return d.cfg.Traces.Context(ctx, who.Execution)
}
