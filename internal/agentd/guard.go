package agentd

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// guard refuses what must not reach the API: an unknown Host (a rebound DNS
// name), a page of another site, a missing token.
func (d *Daemon) guard(next http.Handler, anyIP bool) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		replyError(w, refuse(http.StatusForbidden, "cross_origin", "requests from pages of other sites are refused"))
	}))
	protected := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !d.hostAllowed(req.Host, anyIP) {
			replyError(w, refuse(http.StatusForbidden, "host_not_allowed", "the Host header names none of this agent's hosts"))
			return
		}
		if d.cfg.Token != "" && !sameToken(req.Header.Get("Authorization"), d.cfg.Token) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="signalbox agent"`)
			replyError(w, refuse(http.StatusUnauthorized, "unauthorized", "this agent wants its token: Authorization: Bearer …"))
			return
		}
		protected.ServeHTTP(w, req)
	})
}

// hostAllowed accepts loopback names and addresses, the configured names and,
// on a listener beyond loopback, plain addresses, which cannot be rebound.
func (d *Daemon) hostAllowed(hostport string, anyIP bool) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" { // a zone may hold any text
		return anyIP || ip.IsLoopback() || slices.Contains(d.cfg.Hosts, host)
	}
	return slices.ContainsFunc(d.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// sameToken compares in constant time, whatever the lengths.
func sameToken(header, token string) bool {
	scheme, got, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	a, b := sha256.Sum256([]byte(strings.TrimSpace(got))), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == "application/json"
}

// loopback reports whether only this machine can reach the address.
func loopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// jsonErrors has the mux's own refusals (no such path, wrong method) speak
// JSON as well.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, pattern := mux.Handler(req); pattern != "" {
			mux.ServeHTTP(w, req)
			return
		}
		probe := &statusProbe{header: http.Header{}}
		mux.ServeHTTP(probe, req)
		if allow := probe.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			replyError(w, refuse(http.StatusMethodNotAllowed, "method_not_allowed", "%s is not served here; use %s", preview(req.Method), allow))
			return
		}
		replyError(w, refuse(http.StatusNotFound, "not_found", "there is no such path"))
	})
}

// statusProbe takes an answer for its headers only.
type statusProbe struct{ header http.Header }

func (p *statusProbe) Header() http.Header         { return p.header }
func (p *statusProbe) WriteHeader(int)             {}
func (p *statusProbe) Write(b []byte) (int, error) { return len(b), nil }

// What Config.Tools may say of the director's tools.
const (
	toolsAuto     = "auto"     // where it has any behind its gateway
	toolsDirector = "director" // always: the queue is there as tools
	toolsNone     = "none"     // never
)

// gatewayWait is how long a run waits to be told which tools its director has.
const gatewayWait = 5 * time.Second

// gateway is what the run is told of its director's tools, or nil.
func (r *run) gateway() *runner.Gateway {
	d := r.d
	if !runner.SpeaksMCP(d.cfg.Kind) || d.cfg.Director == "" || d.cfg.Tools == toolsNone {
		return nil
	}
	servers, any, err := d.directorTools(r.task.RunToken)
	if err != nil {
		r.remark("the director's tools could not be listed, and this run goes without: %v", err)
		return nil
	}
	if !any && d.cfg.Tools != toolsDirector {
		return nil
	}
	return &runner.Gateway{Servers: servers, Dir: d.disk.runDir(r.record().TaskID)}
}

// directorTools lists the MCP servers behind the director's gateway that a
// run's token may use, and reports whether there is any tool there besides the director's own.
func (d *Daemon) directorTools(token string) (servers []string, any bool, err error) {
	c, err := client.New(d.cfg.Director, client.Options{Token: token})
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), gatewayWait)
	defer cancel()
	tools, err := c.ListTools(ctx)
	if client.Code(err) == string(signalbox.CodeNotFound) {
		return nil, false, nil
	}
	for _, s := range tools.Servers {
		any = any || s.Kind != "internal"
		if s.Kind == "mcp" {
			servers = append(servers, s.Name)
		}
	}
	slices.Sort(servers)
	return servers, any, err
}

// remark writes a line of our own to the run's log.
func (r *run) remark(format string, args ...any) {
	fmt.Fprintf(r.log, "[signalbox] "+format+"\n", args...)
}
