package director

import (
	"errors"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// login is POST /api/login. The answer sets a cookie with a secret that is
// always new; the login that the browser had before ends.
func (d *Director) login(w http.ResponseWriter, r *http.Request) error {
	var req api.LoginRequest
	if err := decode(w, r, &req, false); err != nil {
		return err
	}
	addr := callerFrom(r).addr
	who, secret, ends, err := d.identity.Login(r.Context(), req.User, req.Password, addr)
	if err != nil {
		return d.loginFailed(r, req.User, err)
	}
	who.Addr = addr
	if err := d.auditAs(r, who, signalbox.Audit{EventType: "login", Action: "login", Resource: who.Key()}); err != nil {
		return errors.Join(err, d.identity.Logout(r.Context(), secret))
	}
	if old := cookieOf(r); old != "" {
		if err := d.identity.Logout(r.Context(), old); err != nil {
			return err
		}
	}
	setLoginCookie(w, r, secret, ends.Sub(d.engine.Now()))
	d.answer(w, http.StatusOK, d.meOf(who))
	return nil
}

// loginFailed records a failure, and says when to try again. What was typed
// as the user is recorded only if there is one: it may be a password.
func (d *Director) loginFailed(r *http.Request, user string, err error) error {
	code := signalbox.CodeOf(err)
	if code != signalbox.CodeUnauthorized && code != signalbox.CodeRateLimited {
		return err
	}
	resource := "an unknown user"
	if d.identity.HasUser(user) {
		resource = "user:" + user
	}
	d.auditBounded(r, signalbox.Audit{
		EventType: "login", Action: "login", Resource: resource, Result: auditFailed, Severity: severityWarning,
	}, map[string]any{"code": string(code)})
	var blocked *identity.Blocked
	if errors.As(err, &blocked) {
		var plain *signalbox.Error
		errors.As(err, &plain)
		return &refusal{err: plain, hint: "the right password works from another address", retryAfter: int(blocked.Wait/time.Second) + 1}
	}
	if code == signalbox.CodeUnauthorized {
		return refuse(code, "check both; signalbox users lists the users, for an admin", "%s", err.Error())
	}
	return err
}

// setLoginCookie sets the cookie of a login, or with an age below 0 takes it
// away. No script can read it, and no other site makes a browser send it.
func setLoginCookie(w http.ResponseWriter, r *http.Request, secret string, age time.Duration) {
	seconds := int((age + time.Second - 1) / time.Second)
	if age < 0 {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // without TLS a Secure cookie would never come back
		Name: loginCookie, Value: secret, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// Whoever claims a proxy with TLS that is not there harms only itself.
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// logout is POST /api/logout.
func (d *Director) logout(w http.ResponseWriter, r *http.Request) error {
	if secret := cookieOf(r); secret != "" {
		who, err := d.identity.FromLogin(secret)
		if err == nil {
			if err := d.identity.Logout(r.Context(), secret); err != nil {
				return err
			}
			if err := d.auditAs(r, who, signalbox.Audit{EventType: "login", Action: "logout", Resource: who.Key()}); err != nil {
				return err
			}
		}
		setLoginCookie(w, r, "", -1)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// me is GET /api/me.
func (d *Director) me(w http.ResponseWriter, r *http.Request) error {
	d.answer(w, http.StatusOK, d.meOf(callerOf(r).who))
	return nil
}

func (d *Director) meOf(who signalbox.Principal) api.Me {
	v := api.Me{
		Kind: string(who.Kind), ID: who.ID, Email: who.Email, Scopes: scopeList(who.Scopes), Agents: who.Agents,
		TokenID: who.TokenID, Open: d.identity.Open(),
	}
	if v.Kind == "" {
		v.Kind = "anonymous"
	}
	if t, ok := d.identity.Token(who.TokenID); ok {
		v.ExpiresAt = timePtr(t.ExpiresAt)
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
