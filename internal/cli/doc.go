// Package cli is the command line that people and scripts call. Each command
// talks to the director through the client package. cmd/signalbox passes in the
// roles, such as up and director.
//
// Its output is a contract. Results go to standard output, everything else to
// standard error. --json prints one document, or one per line for streams. It asks
// for input only at a terminal: for the password of a new user, and for
// confirmation before it removes or stops something. docs/cli.md is generated
// from the commands.
package cli
