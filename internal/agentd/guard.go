package agentd

import (
	"context"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/httpguard"
)

// guard refuses an unknown Host (DNS rebinding), cross-origin requests and missing tokens.
func (d *Daemon) guard(next http.Handler, anyIP bool) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		replyError(w, refuse(http.StatusForbidden, "cross_origin", "requests from pages of other sites are refused"))
	}))
	protected, hosts := cross.Handler(next), httpguard.NewHosts(anyIP, d.cfg.Hosts...)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !hosts.Allow(req.Host) {
			replyError(w, refuse(http.StatusForbidden, "host_not_allowed", "the Host header names none of this agent's hosts"))
			return
		}
		if d.cfg.Token != "" && !httpguard.SameToken(req.Header.Get("Authorization"), d.cfg.Token) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="signalbox agent"`)
			replyError(w, refuse(http.StatusUnauthorized, "unauthorized", "this agent wants its token: Authorization: Bearer …"))
			return
		}
		protected.ServeHTTP(w, req)
	})
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

// jsonErrors converts the mux's own errors to JSON.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch allow, none := httpguard.Unmatched(mux, req); {
		case !none:
			mux.ServeHTTP(w, req)
		case allow != "":
			w.Header().Set("Allow", allow)
			replyError(w, refuse(http.StatusMethodNotAllowed, "method_not_allowed", "%s is not served here; use %s", preview(req.Method), allow))
		default:
			replyError(w, refuse(http.StatusNotFound, "not_found", "there is no such path"))
		}
	})
}

// Values of Config.Tools.
const (
	toolsAuto     = "auto"     // if the director's gateway has any
	toolsDirector = "director" // always: the queue itself provides tools
	toolsNone     = "none"     // never
)

// gatewayWait bounds the request for the director's tools.
const gatewayWait = 5 * time.Second

// gateway describes the director's tools for the run, or nil.
func (r *run) gateway() *runner.Gateway {
	d := r.d
	if !runner.SpeaksMCP(d.cfg.Kind) || d.cfg.Director == "" || d.cfg.Tools == toolsNone {
		return nil
	}
	servers, any, err := d.directorTools(r.task.RunToken)
	if err != nil {
		r.logNote("the director's tools could not be listed, and this run goes without: %v", err)
		return nil
	}
	if !any && d.cfg.Tools != toolsDirector {
		return nil
	}
	return &runner.Gateway{Servers: servers, Dir: d.disk.runDir(r.record().TaskID)}
}

// directorTools lists the MCP servers behind the director's gateway that a run's token may use,
// and reports whether there are tools other than the director's own.
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

// logNote writes a note of the daemon to the run's log.
func (r *run) logNote(format string, args ...any) {
	fmt.Fprintf(r.log, "[signalbox] "+format+"\n", args...)
}
