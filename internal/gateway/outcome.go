package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// outcome converts what the provider returned. If the context has ended, the gateway's own
// error replaces it.
func (g *Gateway) outcome(caller, running context.Context, u *inFlightCall, r Result, err error) (Result, error) {
	if err == nil && errors.Is(context.Cause(running), errLost) && r.Run != nil && r.Run.Reason == signalbox.ReasonCancelled {
		return Result{}, contextError(caller, running, u) // not a cancel: it may be a task
	}
	if err == nil && running.Err() != nil && u.call.Task == "" && r.Run != nil && r.Run.Reason == signalbox.ReasonCancelled {
		return Result{}, contextError(caller, running, u)
	}
	if err == nil {
		if n := len(r.Content) + len(r.Structured) + len(r.Meta) + len(r.Metadata); n > MaxAnswer {
			return Result{}, signalbox.Errorf(signalbox.CodeTooLarge, "The tool %q answered with %d bytes; at most %d are handed on. Ask it for less, such as one page or one part.", u.entry.tool.Name, n, MaxAnswer)
		}
		if len(r.Content) == 0 {
			r.Content = json.RawMessage("[]")
		}
		return Result{
			Content: validUTF8(r.Content), Structured: validUTF8(r.Structured), Meta: validUTF8(r.Meta), IsError: r.IsError,
			Metadata: validUTF8(r.Metadata), Run: r.Run,
		}, nil
	}
	if running.Err() != nil {
		return Result{}, contextError(caller, running, u)
	}
	if protocol, ok := errors.AsType[*ProtocolError](err); ok {
		protocol.Data = validUTF8(protocol.Data)
		return Result{}, protocol
	}
	if _, ok := errors.AsType[*signalbox.Error](err); ok {
		return Result{}, err
	}
	failed := signalbox.Errorf(signalbox.CodeToolFailed, "The tool %q failed, and its server %s did not say how; the gateway's log may have more.", u.entry.tool.Name, u.entry.tool.Server)
	failed.Err = err
	return Result{}, failed
}

// validUTF8 replaces invalid UTF-8 in JSON of an upstream by U+FFFD; clients would reject the
// whole message otherwise.
func validUTF8(raw json.RawMessage) json.RawMessage {
	if utf8.Valid(raw) {
		return raw
	}
	return bytes.ToValidUTF8(raw, []byte("\uFFFD"))
}

// contextError is the error of a call whose context ended while it ran.
func contextError(caller, running context.Context, u *inFlightCall) error {
	cause := context.Cause(running)
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(cause, errTimeout):
		return signalbox.Errorf(signalbox.CodeToolTimeout, "The tool %q did not answer within %v, so the call was cancelled. It may have had an effect all the same. Ask it for less, or raise its timeout.", u.entry.tool.Name, formatDuration(u.call.Limit))
	case errors.Is(cause, errLost):
		return signalbox.Errorf(signalbox.CodeToolFailed, "The call of tool %q was ended: the director could not keep its slot of tool queue %q, which is shared with other directors, because it did not reach the store in time. "+
			"It may have had an effect all the same.", u.entry.tool.Name, u.entry.tool.Queue)
	}
	return errClosing
}

// notAcquired is the error of a call that got no slot.
func (g *Gateway) notAcquired(caller context.Context, u *inFlightCall, err error) error {
	if caller.Err() == nil && errors.Is(context.Cause(u.ctx), errClosing) {
		return errClosing
	}
	var code signalbox.Code
	var why error // logged only
	switch {
	case errors.Is(err, toolqueue.ErrFull):
		code = signalbox.CodeToolQueue
	case errors.Is(err, toolqueue.ErrTimeout):
		code = signalbox.CodeToolQueueOut
	case errors.Is(err, toolqueue.ErrUnknown):
		code = signalbox.CodeToolFailed
	case errors.Is(err, toolqueue.ErrUnavailable):
		code, why = signalbox.CodeStoreFailed, errors.Unwrap(err)
	default:
		return err // the caller's context error, with how long the call waited
	}
	e := &signalbox.Error{Code: code, Message: "The tool \"" + u.entry.tool.Name + "\" was not called: " + err.Error(), Err: why}
	if at, ok := errors.AsType[*toolqueue.Error](err); ok && !at.Held.Until.IsZero() {
		e.RetryAfter = max(time.Until(at.Held.Until), time.Second)
	}
	return e
}

// unknown is the error for an unknown tool. It names a server that has not listed its tools yet
// and may have the tool.
func (g *Gateway) unknown(name string) error {
	shown := truncate(name, 128)
	for _, p := range g.providers {
		own := strings.HasPrefix(name, p.Name()+"__")
		if !own && !strings.HasPrefix(name, "rest__") {
			continue // skips the status lookup, which is expensive
		}
		s := p.Server()
		if !own && s.Kind != KindOpenAPI || s.State == StateReady || s.Tools > 0 {
			continue
		}
		why := string(s.State)
		if s.Error != "" {
			why += " (" + s.Error + ")"
		}
		return signalbox.Errorf(signalbox.CodeToolDown, "The tool %q cannot be called yet: its server %s is %s. Try again in a moment.", shown, s.Name, why)
	}
	hint := "signalbox tools lists those that there are"
	if near := g.table.Load().suggest(name); near != "" {
		hint = "did you mean \"" + near + "\"?"
	}
	return signalbox.Errorf(signalbox.CodeNotFound, "There is no tool %q: %s", shown, hint)
}

// suggest returns the one tool that a wrong name probably means: the same name in
// another case, or without its server.
func (t *table) suggest(name string) string {
	found := ""
	if name == "" {
		return ""
	}
	for _, tool := range t.tools {
		if strings.EqualFold(tool.Name, name) || strings.HasSuffix(tool.Name, "__"+name) {
			if found != "" {
				return ""
			}
			found = tool.Name
		}
	}
	return found
}

// outcomeOf returns the outcome of a call, from a fixed set.
func outcomeOf(r Result, err error) string {
	var protocol *ProtocolError
	var ours *signalbox.Error
	switch {
	case err == nil && r.IsError:
		return OutcomeError
	case err == nil:
		return OutcomeOK
	case errors.As(err, &protocol):
		return OutcomeProtocol
	case errors.As(err, &ours):
		return string(ours.Code)
	}
	return OutcomeCancelled
}

// formatDuration writes 5m, not 5m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
