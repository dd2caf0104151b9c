// Package command runs command tools: programs that get one line of JSON as
// input and whose output is the answer (seed async-task-queue).
//
//	Tool ──Check──▶ the input fits its schema
//	     ──Run────▶ Outcome ──Answer──▶ the answer to a caller
//
// A run ends when none of its processes is alive: the program has ended, or
// was ended (by its time limit, another limit, or a cancel), and all its child
// processes are dead. Only then does Run return, so that the caller can give
// the slot to another run. If the program ends while child processes hold its
// output open, they get a moment to write the rest; then they are ended as by
// a cancel.
//
// # The working folder
//
// If the input names the working folder (CwdFrom), that must be within CwdRoot,
// or within Cwd if CwdRoot is not set, after resolving symbolic links. Check
// verifies this, and so does the beginning of the run, which then enters the
// folder by its resolved path. Between this verification and the program's
// first instruction is the time of a fork, in which somebody who may rename
// folders within the root can still replace one by a link. The sandbox protects
// against that, the path does not.
//
// # Redaction
//
// The values of secret properties, and of variables in the tool's configuration,
// are replaced by *** in everything that leaves this package, even if a value
// arrives in two reads: the end of the read data is held back while a secret may
// begin there. Values are found verbatim and as JSON encodes them, if they are
// in one piece; other forms (another encoding, one letter per line) are not
// found. Values shorter than 4 bytes are not replaced: values such as 1 or true
// occur in any text, which would become unreadable, and the stars would reveal
// the value anyway.
//
// This package knows neither tasks nor the gateway: internal/gateway/command makes
// it a provider, and internal/execution/local uses that for durable tasks.
package command
