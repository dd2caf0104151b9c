// Package api holds the wire types of Signalbox and its route table, shared
// by the director, the client and the agent daemon. Standard library only:
// a program in any repository may import it to speak with either side.
package api
