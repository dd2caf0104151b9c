package signalbox

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of an error, for programs. The director maps each code to an HTTP status
// in one place.
type Code string

// The error codes.
const (
	CodeValidation          Code = "validation_error"     // the request is wrong; Field names the part
	CodeNotFound            Code = "not_found"            // it never existed or has been pruned
	CodeQueueFull           Code = "queue_full"           // the limit on waiting tasks is reached
	CodeIdempotency         Code = "idempotency_conflict" // the key was used with another body
	CodeStaleFence          Code = "stale_fence"          // the writer no longer holds the slot
	CodeConflict            Code = "conflict"             // the task is not in a state that allows it
	CodeAlreadyEnded        Code = "already_ended"        // terminal is final
	CodeAgentBusy           Code = "agent_busy"           // no slot is free, and the caller does not want to wait
	CodeAgentDown           Code = "agent_down"           // the agent is known but not reachable
	CodeCallCycle           Code = "call_cycle"           // the call would wait for itself
	CodeCallDepth           Code = "call_depth"           // a chain of more than MaxCallDepth agent calls
	CodeUnsupported         Code = "unsupported"          // the agent cannot do that
	CodeUnauthorized        Code = "unauthorized"
	CodeForbidden           Code = "forbidden"
	CodeRateLimited         Code = "rate_limited" // too many wrong tokens from one address, or submits from one caller
	CodeBudget              Code = "budget"       // the day's budget is used up; RetryAfter says until when
	CodeTooLarge            Code = "too_large"
	CodeUnsupportedMedia    Code = "unsupported_media_type"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeStoreFailed         Code = "store_failed" // nothing was stored, nothing is acknowledged
	CodeStoreFull           Code = "store_full"   // the same, because there is no space left
	CodeStoreCorrupt        Code = "store_corrupt"
	CodeUnavailable         Code = "unavailable" // shutting down
	CodeInternal            Code = "internal"
	CodeUnresolvedReference Code = "ambiguous" // a part of an id matches several tasks

	CodeToolDown     Code = "tool_down"          // the tool's server is not reachable
	CodeToolLost     Code = "tool_lost"          // the tool's server went away during the call, which may have taken effect
	CodeToolTimeout  Code = "tool_timeout"       // the tool did not answer in time
	CodeToolFailed   Code = "tool_failed"        // the answer of the tool's server is not valid
	CodeToolQueue    Code = "tool_queue_full"    // the limit on calls that wait for the tool is reached
	CodeToolQueueOut Code = "tool_queue_timeout" // the call waited for the tool longer than allowed
)

// Error is an error that a person can act on.
type Error struct {
	Code    Code
	Message string // what was wrong, what was expected, what to do
	Field   string // the part of the request that is wrong, for CodeValidation
	Err     error  // cause, for logs only
	// RetryAfter is how long to wait before a retry, for CodeRateLimited and CodeBudget; 0: not
	// given.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error with a code and a message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns a validation error about a field.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeValidation, Field: field, Message: fmt.Sprintf(format, args...)}
}

// FieldOf returns the field that an error is about, "" if it names none.
func FieldOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Field
	}
	return ""
}

// CodeOf returns the code of err, CodeInternal for an error without one, and
// "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
