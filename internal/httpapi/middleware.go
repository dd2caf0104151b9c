package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpguard"
)

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// middleware wraps the mux with what all requests pass first.
func (d *Server) middleware(mux *http.ServeMux) http.Handler {
	mux.HandleFunc(anyPath, func(w http.ResponseWriter, r *http.Request) { d.unmatched(w, r, allowed(mux, r)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpio.NewRecorder(w)
		defer d.finish(rec, r)
		d.setHeaders(rec, r)
		if httpio.HasBody(r) {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(httpio.BodyTimeout)) // against slowloris; not supported by every writer
		}
		if err := d.checkRequest(r); err != nil {
			d.answerError(rec, r, err)
			return
		}
		mux.ServeHTTP(rec, r)
	})
}

// anyPath is the pattern for requests without a route.
const anyPath = "/"

// allowed returns the methods of a request's path, in the form of the header Allow.
func allowed(mux *http.ServeMux, r *http.Request) string {
	methods := []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut}
	return strings.Join(slices.DeleteFunc(methods, func(method string) bool {
		other := *r
		other.Method = method
		_, pattern := mux.Handler(&other)
		return pattern == anyPath
	}), ", ")
}

// setHeaders sets the request id and the common headers of all answers: an API answer
// must not be sniffed, framed, cached or shown as a page.
func (d *Server) setHeaders(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(httpio.RequestIDHeader)
	if len(id) > 64 || !requestIDForm.MatchString(id) {
		id = "req-" + strings.ToLower(rand.Text()[:20])
	}
	h := w.Header()
	h.Set(httpio.RequestIDHeader, id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// checkRequest refuses requests before they reach a route.
func (d *Server) checkRequest(r *http.Request) error {
	if len(r.RequestURI) > httpio.MaxURLBytes {
		return signalbox.Errorf(signalbox.CodeTooLarge, "the URL has %d bytes; at most %d are allowed", len(r.RequestURI), httpio.MaxURLBytes)
	}
	if !d.hosts.Allow(r.Host) {
		return httpio.Refuse(signalbox.CodeForbidden, "use a loopback name, or add the name to hosts in the director's configuration",
			"the director does not answer under the name %q", httpio.Clip(r.Host))
	}
	if err := d.checkOrigin(r); err != nil {
		return err
	}
	if r.URL.Path != cleanPath(r.URL.Path) {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is nothing at %s", httpio.Clip(r.URL.Path))
	}
	return nil
}

// cleanPath cleans a path but keeps a slash at the end, like the mux.
func cleanPath(p string) string {
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// finish counts the request and turns a panic into an answer.
func (d *Server) finish(w *httpio.Recorder, r *http.Request) {
	if cause := recover(); cause != nil {
		if cause == http.ErrAbortHandler { //nolint:errorlint // the value of a panic is not wrapped
			panic(cause)
		}
		d.log.Error("a handler panicked", "request_id", w.Header().Get(httpio.RequestIDHeader), "path", httpio.Clip(r.URL.Path), "error", cause, "stack", string(debug.Stack()))
		begun := w.Status != 0
		d.answerError(w, r, signalbox.Errorf(signalbox.CodeInternal, "panic"))
		if begun {
			panic(http.ErrAbortHandler) // a partial answer must not look complete
		}
	}
	switch {
	case w.Status != 0:
	case r.Context().Err() != nil:
		w.Status = statusGone
	default:
		w.Status = http.StatusOK
	}
	d.cfg.Metrics.Request(w.Route, w.Status, w.Took(r))
}

// statusGone counts callers that disconnected before their answer. It is never sent.
const statusGone = 499

// hostsOf returns the allowed host names of a director that listens at addr.
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

// checkOrigin refuses requests that a page of another site makes a browser send: writes,
// by http.CrossOriginProtection, and reads that are no navigation. The page could not read
// their answers, but it could hold streams open.
func (d *Server) checkOrigin(r *http.Request) error {
	foreign := d.cross.Check(r) != nil
	if !foreign && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		foreign = r.Header.Get("Sec-Fetch-Site") == "cross-site" || foreignOrigin(r)
	}
	if foreign {
		return httpio.Refuse(signalbox.CodeForbidden, "pages of other sites may not use the director; use a program or the director's own pages",
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

// Traces knows the traces of executions; *telemetry.Traces implements it.
type Traces interface {
	// Context adds the trace of an execution to ctx, unless ctx has one.
	Context(ctx context.Context, queueID string) context.Context
}

// traced adds the caller's trace to the request's context.
func traced(r *http.Request) *http.Request {
	if r.Header.Get("Traceparent") == "" {
		return r
	}
	return r.WithContext(gateway.WithTrace(r.Context(), r.Header))
}

// answerError answers with an error. Internal text goes only to the log.
func (d *Server) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the caller has disconnected
	}
	body, what := httpio.ErrorBody(err)
	body.RequestID = w.Header().Get(httpio.RequestIDHeader)
	if what.Hidden {
		d.log.Error("request failed", "request_id", body.RequestID, "method", r.Method, "path", httpio.Clip(r.URL.Path), "code", body.Error, "error", err.Error())
	}
	if httpio.HasAnswered(w) {
		return // the answer has started already and can only be ended
	}
	h := w.Header()
	if body.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(body.RetryAfter))
	}
	if what.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="signalbox"`)
	}
	_ = httpio.Answer(w, what.Status, body)
}
