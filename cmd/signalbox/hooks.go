//go:build !failpoints

package main

import (
	"net"
	"net/http"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Where failpoints are put in, in a binary that is built for that
// (hooks_failpoints.go). In any other there is nothing.

func hookStore(s store.Store) store.Store                 { return s }
func hookTransport() http.RoundTripper                    { return nil }
func hookDirector(l net.Listener) net.Listener            { return l }
func hookAgent(l net.Listener) net.Listener               { return l }
func hookTools(all []gateway.Provider) []gateway.Provider { return all }
