// Package cli is the command line: what people and scripts call. Each
// command speaks to the director through the client package; the roles, such
// as up and director, are handed in by cmd/signalbox.
//
// Its output is a contract. Results go to standard output, all else to
// standard error. --json prints one document, streams print one a line. It
// asks a person at a terminal alone: for the password of a new user, and before
// it removes or stops something. The exit codes stand in exit.go, docs/cli.md is
// made from the commands themselves.
package cli
