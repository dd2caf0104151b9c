// Package api defines the wire types and the route table of Signalbox, shared by
// the director, the client and the agent daemon. It imports only the standard
// library, so that any program can use it to talk to either side.
package api
