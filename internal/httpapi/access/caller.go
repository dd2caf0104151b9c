package access

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// Caller is who sent a request.
type Caller struct {
	Trusted  bool // authenticated by a token or a login
	Loopback bool // on this host, without a proxy in between
	Addr     string
	Who      signalbox.Principal
	// From is the caller's request, whose credentials are forwarded to other
	// directors. Forwarded says that another director has forwarded the request.
	From      *http.Request
	Forwarded bool
}

// String names the caller for the journal and for messages such as
// "cancelled by …".
func (c Caller) String() string { return c.Who.String() }

type callerKey struct{}

func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func CallerOf(r *http.Request) Caller { return CallerIn(r.Context()) }

func CallerIn(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

func ScopeWords(scopes []signalbox.Scope) string {
	if len(scopes) == 0 {
		return "none"
	}
	list := make([]string, len(scopes))
	for i, s := range scopes {
		list[i] = string(s)
	}
	return strings.Join(list, ", ")
}

// bearer returns the token of a request. Two tokens are an error: a proxy in front of
// the director may have checked the other one.
func bearer(r *http.Request) (token string, given bool, err error) {
	values := r.Header.Values("Authorization")
	if len(values) > 1 {
		return "", false, signalbox.Errorf(signalbox.CodeUnauthorized, "the header Authorization was sent %d times: send it once", len(values))
	}
	if len(values) == 0 {
		return "", false, nil
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "", nil
}

// Cookie returns the value of a cookie. It returns "" if there are several, because
// another site may have set one of them.
func Cookie(r *http.Request, name string) string {
	found := r.CookiesNamed(name)
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// ExecutionOf returns the execution that makes the call, from the token of its run or
// from its header; "" for none. Headers that name an agent are accepted only with that
// agent's own token.
func ExecutionOf(r *http.Request) (executionID string, err error) {
	who := CallerOf(r).Who
	isAgent := who.Kind == signalbox.PrincipalAgent
	if says := r.Header.Get(httpio.SourceAgentHeader); says != "" && (!isAgent || who.ID != says) {
		return "", httpio.Refuse(signalbox.CodeForbidden, "leave out "+httpio.SourceAgentHeader+", or send the token of that agent",
			"%s says %s, but the token is that of %s", httpio.SourceAgentHeader, httpio.Clip(says), tokenHolder(who))
	}
	id := r.Header.Get(httpio.ExecutionHeader)
	switch {
	case who.Run != "" && id != "" && id != who.Run:
		return "", httpio.Refuse(signalbox.CodeForbidden, "leave out "+httpio.ExecutionHeader+": the token identifies the execution",
			"the token is that of execution %s, which cannot call as %s", who.Run, httpio.Clip(id))
	case who.Run != "":
		return who.Run, nil
	case id == "":
		return "", nil
	case !isAgent:
		return "", httpio.Refuse(signalbox.CodeForbidden, "leave out "+httpio.ExecutionHeader+", or send the token of the agent that runs it",
			"%s is accepted only with the token of an agent, but the token is that of %s", httpio.ExecutionHeader, tokenHolder(who))
	case !signalbox.ValidID(id):
		return "", signalbox.Invalid(httpio.ExecutionHeader, "%q is not the id of an execution", httpio.Clip(id))
	}
	return id, nil
}

func tokenHolder(who signalbox.Principal) string {
	if who.Kind == "" {
		return "nobody"
	}
	return who.String()
}

// callerFrom returns a caller with the address of the connection. Proxy headers are not
// trusted for the address; they only make the caller count as not local.
func callerFrom(r *http.Request) Caller {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	c := Caller{Addr: httpio.Clip(host)}
	ip, err := netip.ParseAddr(host)
	proxied := r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("X-Real-Ip") != ""
	c.Loopback = err == nil && ip.Unmap().IsLoopback() && !proxied
	c.From, c.Forwarded = r, r.Header.Get(httpio.ForwardedHeader) != ""
	c.Who.Addr = c.Addr
	if c.Loopback {
		c.Who.Addr = "local"
	}
	return c
}
