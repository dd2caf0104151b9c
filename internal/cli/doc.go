// Package cli is the command line: what people and scripts call. Each
// command speaks to the director through the client package; the roles, such
// as up and director, are handed in by cmd/signalbox.
//
// Its output is a contract. Results go to standard output, everything else to
// standard error. --json prints one document, or one per line for streams. It asks
// questions only at a terminal: for the password of a new user, and before it
// removes or stops something. docs/cli.md is generated from the commands.
package cli
