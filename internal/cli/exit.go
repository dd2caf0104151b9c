package cli

// The exit codes. Scripts depend on them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitNotAllowed  = 4
	exitConflict    = 5
	exitQueueFull   = 6
	exitUnreachable = 7
	exitWarnings    = 8
	exitFailed      = 10
	exitCancelled   = 11
	exitLost        = 12
	exitWaitOver    = 124
	exitDetached    = 130
)

// exitCodes says what each code means, for the help and the documentation.
var exitCodes = []struct {
	code int
	text string
}{
	{exitOK, "done"},
	{exitError, "error"},
	{exitUsage, "usage: a command, flag, argument or configuration that is wrong"},
	{exitNotFound, "not found"},
	{exitNotAllowed, "not allowed"},
	{exitConflict, "conflict: not possible in this state"},
	{exitQueueFull, "the queue, or a tool's, is full, or the agent busy and the caller does not wait"},
	{exitUnreachable, "the director cannot be reached, or is stopping"},
	{exitWarnings, "doctor found nothing that fails, but something to be looked at"},
	{exitFailed, "the task that was waited for, or the tool that was called, failed"},
	{exitCancelled, "the task that was waited for was cancelled"},
	{exitLost, "the task that was waited for was lost or timed out, or the call of a tool timed out or lost its server"},
	{exitWaitOver, "the wait ended; the task goes on"},
	{exitDetached, "interrupted; a task that was waited for goes on"},
}
