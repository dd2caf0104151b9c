package director

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Peers are the directors over the same store; *peers.Peers knows them.
type Peers interface {
	// Self is this director. Its Expires is that of the last beat that was
	// heard by the store.
	Self() store.Director
	// Others lists the directors that live, this one apart, by ID.
	Others() []store.Director
	// HolderOf returns the living director that dispatches to an agent. It is
	// asked often, and reads little or nothing.
	HolderOf(ctx context.Context, agent string) (store.Director, bool)
}

// forwardedHeader is on a request that a director makes on behalf of a caller:
// it names that director. What comes with it is not passed on a second time, so
// that two directors of which each takes the other for the holder do not ask
// each other for ever. Whoever sets it without being a director gets what this
// director knows by itself, and nothing else.
const forwardedHeader = "Signalbox-Forwarded"

// others are the directors that a caller's request may be passed on to.
func (d *Director) others(ctx context.Context) []store.Director {
	if d.cfg.Peers == nil || callerIn(ctx).forwarded {
		return nil
	}
	return d.cfg.Peers.Others()
}

// otherHolder returns the director that dispatches to an agent, or of which the
// executor with that name is a part, where that is another one that can be
// asked.
func (d *Director) otherHolder(ctx context.Context, agent string) (store.Director, bool) {
	if d.cfg.Peers == nil || agent == "" || callerIn(ctx).forwarded {
		return store.Director{}, false
	}
	if isExecutor(agent) {
		return d.otherNamed(instanceOf(agent))
	}
	holder, ok := d.cfg.Peers.HolderOf(ctx, agent)
	return holder, ok && holder.ID != d.cfg.Peers.Self().ID && holder.URL != ""
}

// otherNamed is another living director, by its instance.
func (d *Director) otherNamed(instance string) (store.Director, bool) {
	for _, other := range d.cfg.Peers.Others() {
		if other.ID == instance {
			return other, other.URL != ""
		}
	}
	return store.Director{}, false
}

// instanceOf is the director of which an executor is a part.
func instanceOf(executor string) string {
	_, instance, _ := strings.Cut(executor, "@")
	return instance
}

// aliveElsewhere reports whether an executor is that of another director that
// lives.
func (d *Director) aliveElsewhere(executor string) bool {
	if d.cfg.Peers == nil {
		return false
	}
	_, alive := d.otherNamed(instanceOf(executor))
	return alive
}

// ownHost is the host under which the other directors ask this one.
func ownHost(p Peers) []string {
	if p == nil {
		return nil
	}
	u, err := url.Parse(p.Self().URL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return []string{u.Hostname()}
}

// shown are the headers by which a caller proves who it is, or says in which
// execution it asks. They go along to another director, which decides by them
// for itself: nothing else vouches for the caller there.
var shown = []string{"Authorization", loginHeader, sourceAgentHeader, executionHeader, "User-Agent"}

// proofOf takes from a request what another director is to be shown. Of the
// cookies that is the login alone.
func proofOf(r *http.Request) http.Header {
	proof := http.Header{}
	for _, name := range shown {
		if values := r.Header.Values(name); len(values) > 0 {
			proof[name] = values
		}
	}
	if login := cookieNamed(r, loginCookie); login != "" {
		proof.Set("Cookie", loginCookie+"="+login) // as it came, so it needs no quotes
	}
	return proof
}

// unreached is what a caller is told where only another director could answer,
// and that one does not.
func unreached(holder store.Director, what string) *refusal {
	return &refusal{
		err:        signalbox.Errorf(signalbox.CodeUnavailable, "%s is with director %s (%s), which does not answer", what, clip(holder.ID), clip(holder.URL)),
		hint:       "try again: where that director has died, another one takes over within 11 seconds; signalbox directors shows who lives",
		retryAfter: 5,
	}
}
