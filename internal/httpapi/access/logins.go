package access

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

const (
	// LoginCookie and deviceCookie are the names of the cookies that a login sets.
	// LoginHeader is the name of the header with the other half of its secret.
	LoginCookie  = "signalbox_login"
	deviceCookie = "signalbox_device"
	LoginHeader  = "Signalbox-Login"
	deviceFor    = 180 * 24 * time.Hour
)

// Logins has the handlers that start and end logins, and that of GET /api/me.
type Logins struct {
	id    *identity.Keeper
	now   func() time.Time
	audit *AuditLog
}

func NewLogins(id *identity.Keeper, audit *AuditLog, now func() time.Time) *Logins {
	return &Logins{id: id, now: now, audit: audit}
}

// Login is POST /api/login. The answer sets a cookie with a new secret, and has the key
// that is required in addition. An earlier login of the browser ends.
func (h *Logins) Login(w http.ResponseWriter, r *http.Request) error {
	var req api.LoginRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	l, err := h.id.Login(r.Context(), identity.Attempt{
		User: req.User, Password: req.Password, Addr: callerFrom(r).Addr, Device: Cookie(r, deviceCookie),
	})
	if err != nil {
		return h.loginFailed(r, req.User, err)
	}
	return h.loggedIn(w, r, l, "login")
}

// ChangePassword is POST /api/me/password. For a caller with a browser login the answer is
// that of Login.
func (h *Logins) ChangePassword(w http.ResponseWriter, r *http.Request) error {
	var req api.ChangePassword
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	who := CallerOf(r).Who
	if who.Kind != signalbox.PrincipalUser || !h.id.HasUser(who.ID) {
		return httpio.Refuse(signalbox.CodeUnsupported, "log in as a user; signalbox users lists them, for an admin", "%s has no password", who.String())
	}
	l, err := h.id.ChangePassword(r.Context(), identity.Attempt{
		User: who.ID, Password: req.Password, Addr: callerFrom(r).Addr, Device: Cookie(r, deviceCookie),
	}, req.NewPassword)
	if err != nil {
		if failed := h.loginFailed(r, who.ID, err); signalbox.CodeOf(err) != signalbox.CodeUnauthorized {
			return failed
		}
		return &signalbox.Error{Code: signalbox.CodeForbidden, Field: "password", Message: "that is not your password"} // not 401: the login itself is valid
	}
	if err := h.audit.Write(r, signalbox.Audit{EventType: "user", Action: "password", Resource: who.Key()}); err != nil {
		return err
	}
	if Cookie(r, LoginCookie) != "" {
		return h.loggedIn(w, r, l, "login")
	}
	if err := h.id.Logout(r.Context(), l.Cookie, l.Key); err != nil { // tokens of programs stay valid
		return err
	}
	return httpio.Answer(w, http.StatusOK, api.LoggedIn{Me: h.meOf(who)})
}

// UseLink is POST /api/login/once: a login by a one-time link.
func (h *Logins) UseLink(w http.ResponseWriter, r *http.Request) error {
	var req api.LoginOnce
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	if req.Code == "" {
		return signalbox.Invalid("code", "give the code of a login link")
	}
	l, err := h.id.UseLink(r.Context(), req.Code)
	if err != nil {
		if signalbox.CodeOf(err) == signalbox.CodeUnauthorized {
			h.audit.writeBounded(r, signalbox.Audit{
				EventType: "login", Action: "login_link", Resource: "a login link", Result: signalbox.AuditFailed, Severity: signalbox.AuditWarning,
			}, nil)
		}
		return err
	}
	return h.loggedIn(w, r, l, "login_link")
}

// MakeLink is POST /api/login/link: a one-time link for the owner. It requires the owner's
// token.
func (h *Logins) MakeLink(w http.ResponseWriter, r *http.Request) error {
	if who := CallerOf(r).Who; !h.id.IsStatic(who) {
		return httpio.Refuse(signalbox.CodeForbidden, "log in with your password", "a login link is for the owner of the director's own token, and %s is not", who.String())
	}
	code, ends, err := h.id.NewLink()
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusCreated, api.LoginLink{Path: linkPath(code), ExpiresAt: ends.UTC()})
}

// Link makes a one-time login link for the owner at url.
func (h *Logins) Link(url string) (string, error) {
	code, _, err := h.id.NewLink()
	return url + linkPath(code), err
}

// linkPath is the path of a login link. The code is in the fragment, which browsers do not
// send, so that no log has it.
func linkPath(code string) string { return "/login#once=" + code }

// loggedIn answers with a new login.
func (h *Logins) loggedIn(w http.ResponseWriter, r *http.Request, l identity.Login, action string) error {
	l.Who.Addr = callerFrom(r).Addr
	if err := h.audit.WriteAs(r, l.Who, signalbox.Audit{EventType: "login", Action: action, Resource: l.Who.Key()}); err != nil {
		return errors.Join(err, h.id.Logout(r.Context(), l.Cookie, l.Key))
	}
	if err := h.id.Logout(r.Context(), Cookie(r, LoginCookie), r.Header.Get(LoginHeader)); err != nil {
		return err
	}
	setCookie(w, r, LoginCookie, l.Cookie, l.Ends.Sub(h.now()))
	if l.Device != "" {
		setCookie(w, r, deviceCookie, l.Device, deviceFor)
	}
	return httpio.Answer(w, http.StatusOK, api.LoggedIn{Me: h.meOf(l.Who), Key: l.Key})
}

// loginFailed records a failure and says when to try again. The user name is recorded
// only if it exists: it may be a mistyped password.
func (h *Logins) loginFailed(r *http.Request, user string, err error) error {
	code := signalbox.CodeOf(err)
	if code != signalbox.CodeUnauthorized && code != signalbox.CodeRateLimited {
		return err
	}
	resource := "an unknown user"
	if h.id.HasUser(user) {
		resource = "user:" + user
	}
	h.audit.writeBounded(r, signalbox.Audit{
		EventType: "login", Action: "login", Resource: resource, Result: signalbox.AuditFailed, Severity: signalbox.AuditWarning,
	}, map[string]any{"code": string(code)})
	if blocked, ok := errors.AsType[*identity.Blocked](err); ok {
		var plain *signalbox.Error
		errors.As(err, &plain)
		return &httpio.Refusal{Err: plain, Hint: "the right password works from another address, and in a browser that has logged in before", RetryAfter: int(blocked.Wait/time.Second) + 1}
	}
	if code == signalbox.CodeUnauthorized {
		return httpio.Refuse(code, "check both; signalbox users lists the users, for an admin", "%s", err.Error())
	}
	return err
}

// setCookie sets a cookie of a login, or deletes it if age is negative. Scripts cannot read
// it, and other sites cannot make a browser send it, but servers on other ports of this host
// receive it.
func setCookie(w http.ResponseWriter, r *http.Request, name, secret string, age time.Duration) {
	seconds := int((age + time.Second - 1) / time.Second)
	if age < 0 {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // without TLS a browser would never send a Secure cookie
		Name: name, Value: secret, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// A caller that forges this header harms only itself.
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// Logout is POST /api/logout.
func (h *Logins) Logout(w http.ResponseWriter, r *http.Request) error {
	if cookie := Cookie(r, LoginCookie); cookie != "" {
		key := r.Header.Get(LoginHeader)
		who, err := h.id.FromLogin(cookie, key)
		if err == nil {
			if err := h.id.Logout(r.Context(), cookie, key); err != nil {
				return err
			}
			if err := h.audit.WriteAs(r, who, signalbox.Audit{EventType: "login", Action: "logout", Resource: who.Key()}); err != nil {
				return err
			}
		}
		setCookie(w, r, LoginCookie, "", -1)
	}
	return httpio.NoContent(w)
}

// Fresh wraps a handler that changes rights: it refuses logins that are older than
// identity.ReauthWithin.
func (h *Logins) Fresh(handle httpio.Handler) httpio.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !h.id.Fresh(CallerOf(r).Who) {
			return httpio.Refuse(signalbox.CodeForbidden, "log in again at /login, with the password or with a link of signalbox login-link; or use a token",
				"a login changes tokens and users only within %d minutes of its password", identity.ReauthWithin/time.Minute)
		}
		return handle(w, r)
	}
}

// Me is GET /api/me.
func (h *Logins) Me(w http.ResponseWriter, r *http.Request) error {
	return httpio.Answer(w, http.StatusOK, h.meOf(CallerOf(r).Who))
}

func (h *Logins) meOf(who signalbox.Principal) api.Me {
	v := api.Me{
		Kind: string(who.Kind), ID: who.ID, Email: who.Email, Scopes: scopeList(who.Scopes), Agents: who.Agents,
		TokenID: who.TokenID, Open: h.id.Open(),
	}
	v.Kind = cmp.Or(v.Kind, "anonymous")
	if t, ok := h.id.Token(who.TokenID); ok {
		v.ExpiresAt = view.Time(t.ExpiresAt)
	}
	return v
}

func scopeList(scopes []signalbox.Scope) []string {
	list := make([]string, len(scopes))
	for i, s := range scopes {
		list[i] = string(s)
	}
	return list
}

var (
	//go:embed page/login.html
	loginHTML string
	//go:embed page/login.css
	loginCSS string
	//go:embed page/login.js
	loginJS string
)

// The login page has an inline style, which the policy allows by its hash, and nothing else
// inline. Without the script the form sends nothing.
var (
	loginPageBody   = strings.Replace(loginHTML, "STYLE", loginCSS, 1)
	loginPagePolicy = "default-src 'none'; script-src 'self'; style-src 'sha256-" + hashOf(loginCSS) +
		"'; img-src data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Page is GET /login.
func (h *Logins) Page(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Security-Policy", loginPagePolicy)
	return page(w, "text/html; charset=utf-8", loginPageBody)
}

// Script is GET /login.js.
func (h *Logins) Script(w http.ResponseWriter, _ *http.Request) error {
	return page(w, "text/javascript; charset=utf-8", loginJS)
}

func page(w http.ResponseWriter, media, body string) error {
	w.Header().Set("Content-Type", media)
	httpio.ExtendWriteDeadline(w)
	w.Write([]byte(body)) // an error means that the caller is gone
	return nil
}
