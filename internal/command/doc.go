// Package command runs command tools: programs that are given one line of JSON
// on their input and whose outputs are the answer (seed async-task-queue).
//
//	Tool ──Check──▶ the input fits its schema
//	     ──Run────▶ Outcome ──Answer──▶ what a caller is answered
//
// A run ends when nothing of it lives any more: the program has ended, or was
// ended (its time, a limit, a cancel), and all that it started is dead. Only
// then Run returns, so whoever gave it a slot can give that to another. A
// program that ends while others that it started hold its output gets a moment
// for them to say the rest; then they are ended as by a cancel.
//
// # The working folder
//
// Where the input names the working folder (CwdFrom), it must lie within
// CwdRoot, or within Cwd where there is none, once all links are followed. That
// is looked at by Check and again when the run begins, which then enters the
// folder by its path without links. Between that look and the program's first
// instruction lies the time of a fork: whoever may rename folders within the
// root can still put a link in the place of one in that time. Against such a
// one the sandbox holds, not the path.
//
// # What is hidden
//
// The values of secret properties, and those of variables that stand in the
// tool's configuration, are written as *** in all that leaves this package, also
// where they arrive in two reads: the end of what was read is held back while a
// hidden value may begin there. They are known as they are written and as JSON
// writes them, in one piece; what a program makes of them otherwise (another
// encoding, one letter a line) is not. Values shorter than 4 bytes are shown:
// such as 1 or true stand in any text, which would become unreadable, and by
// its stars would tell the value all the same.
//
// It knows neither tasks nor the gateway: internal/gateway/command makes a
// provider of it, internal/execution/local runs it for durable tasks through that.
package command
