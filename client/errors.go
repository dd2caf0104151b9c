package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/signalbox-ai/signalbox/api"
)

// CodeUnexpectedAnswer is the code of an answer that no director gives: the
// address belongs to another server, or a proxy stands between.
const CodeUnexpectedAnswer = "unexpected_answer"

// Error is an answer of the director that is not a success.
type Error struct {
	Status int       // HTTP status
	Body   api.Error // code, message, hint
}

func (e *Error) Error() string {
	if e.Body.Message != "" {
		return e.Body.Message
	}
	return fmt.Sprintf("the director answered %d %s (%s)", e.Status, http.StatusText(e.Status), e.Body.Error)
}

// Code returns the director's code for what went wrong, such as queue_full.
func (e *Error) Code() string { return e.Body.Error }

// ChatError says why a chat or a bypass task was refused or did not complete.
// It is an *Error too.
type ChatError struct {
	Status int // HTTP status; 0 where it came as an event of a stream
	Body   api.ChatError
}

func (e *ChatError) Error() string {
	if e.Body.Message != "" {
		return e.Body.Message
	}
	return fmt.Sprintf("the chat with %s did not complete: %s", e.Body.Agent, e.Body.Code)
}

// Code returns what went wrong, such as agent_busy or wait_timeout.
func (e *ChatError) Code() string { return e.Body.Code }

// ID returns the queue_id of the task, "" where none was stored.
func (e *ChatError) ID() string {
	if e.Body.Execution == nil {
		return ""
	}
	return e.Body.Execution.ID
}

// Unwrap makes it an *Error, for those who want no more than its code.
func (e *ChatError) Unwrap() error {
	b := e.Body
	return &Error{Status: e.Status, Body: api.Error{
		Error: b.Code, Message: b.Message, Hint: b.Hint, Retryable: b.Retryable, RetryAfter: b.RetryAfter, RequestID: b.RequestID,
	}}
}

func isChatError(err error) bool {
	var e *ChatError
	return errors.As(err, &e)
}

// UnreachableError says that no answer came from the director.
type UnreachableError struct {
	URL string // of the director
	// Sent says that the request may have arrived and been carried out. Only
	// a connection that was never made proves that it has not.
	Sent bool
	// Key is the Idempotency-Key of a submit that may have been stored:
	// submitting again with it and the same body finds that task or makes it.
	Key string
	Err error
}

func (e *UnreachableError) Error() string {
	if e.Sent {
		return fmt.Sprintf("no answer from the director at %s: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("cannot reach the director at %s: %v", e.URL, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Code returns the director's code in err, such as not_found, and "" for an
// error that is not an answer of the director.
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Body.Error
	}
	return ""
}

// IsUnreachable reports whether err says that no answer came.
func IsUnreachable(err error) bool {
	var e *UnreachableError
	return errors.As(err, &e)
}

// neverSent reports whether err proves that no request was sent.
func neverSent(err error) bool {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert)
}

// lostReply reports whether err leaves open what became of the request: no
// answer, or a gateway's word that it got none.
func lostReply(err error) bool {
	var gone *UnreachableError
	if errors.As(err, &gone) {
		return gone.Sent
	}
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusBadGateway || e.Status == http.StatusGatewayTimeout)
}

// passing reports whether err may go away by itself: the director is gone,
// is starting or draining, or asks to come back later.
func passing(err error) bool {
	if IsUnreachable(err) || errors.Is(err, errStreamEnded) {
		return true
	}
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500 && e.Body.Retryable
}
