//go:build !failpoints

// Package hook inserts failpoints in a program built with the tag failpoints. In all
// other builds its functions return their arguments.
package hook

import (
	"net"
	"net/http"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Store adds failpoints to a store.
func Store(s store.Store) store.Store { return s }

// Transport returns the transport to agents, with failpoints; nil: the default.
func Transport() http.RoundTripper { return nil }

// Director adds failpoints to the listener of a director.
func Director(l net.Listener) net.Listener { return l }

// Agent adds failpoints to the listener of an agent.
func Agent(l net.Listener) net.Listener { return l }

// Tools adds failpoints to the calls of tools.
func Tools(all []gateway.Provider) []gateway.Provider { return all }
