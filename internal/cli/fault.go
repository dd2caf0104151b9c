package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// fault is an error as the command line prints it.
type fault struct {
	exit      int
	code      string // for programs
	message   string
	hint      string
	retryable bool
	matches   []string // for ambiguous
	id        string   // of the task concerned
	silent    bool     // print nothing: everything was printed already
}

func (f *fault) Error() string { return f.message }

func failure(exit int, code, format string, args ...any) *fault {
	return &fault{exit: exit, code: code, message: fmt.Sprintf(format, args...)}
}

func usage(format string, args ...any) *fault { return failure(exitUsage, "usage", format, args...) }

func (f *fault) withHint(format string, args ...any) *fault {
	f.hint = fmt.Sprintf(format, args...)
	return f
}

// again marks a fault as retryable and adds a hint on how to retry.
func (f *fault) again(format string, args ...any) *fault {
	f.retryable = true
	return f.withHint(format, args...)
}

// storedHint is the hint for a submit that got no answer.
const storedHint = "it may have been stored; the same command with --idempotency-key %s finds it or submits it, never twice"

// about sets the task that a fault is about.
func (f *fault) about(id string) *fault {
	f.id = id
	return f
}

// errorDocument is the JSON of an error.
type errorDocument struct {
	Error     string   `json:"error"` // code
	Message   string   `json:"message"`
	Hint      string   `json:"hint"`
	Retryable bool     `json:"retryable"`
	Matches   []string `json:"matches,omitempty"`
	QueueID   string   `json:"queue_id,omitempty"`
}

// report writes an error and returns the exit code.
func report(w io.Writer, asJSON bool, err error) int {
	if err == nil {
		return exitOK
	}
	f := toFault(err)
	switch {
	case f.silent:
	case asJSON:
		_ = writeJSON(w, errorDocument{f.code, f.message, f.hint, f.retryable, f.matches, f.id})
	default:
		fmt.Fprintln(w, "Error: "+cleanLines(f.message))
		for _, match := range f.matches {
			fmt.Fprintln(w, "  "+clean(match))
		}
		if f.hint != "" {
			fmt.Fprintln(w, "Hint: "+clean(f.hint))
		}
	}
	return f.exit
}

// toFault gives every error its exit code.
func toFault(err error) *fault {
	var f *fault
	var answer *client.Error
	var chat *client.ChatError
	var gone *client.UnreachableError
	var conf config.Problems
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &gone): // first: it may wrap the error response of a proxy
		return unreachable(gone)
	case errors.As(err, &chat):
		return chatFault(chat)
	case errors.As(err, &answer):
		return apiFault(answer)
	case errors.As(err, &conf):
		return &fault{exit: exitUsage, code: "config", message: err.Error()}
	case errors.Is(err, context.Canceled):
		return &fault{exit: exitDetached, code: "interrupted", message: "interrupted"}
	}
	f = &fault{exit: exitError, code: "error", message: err.Error()}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		f.hint = hinted.Hint()
	}
	return f
}

func unreachable(gone *client.UnreachableError) *fault {
	f := failure(exitUnreachable, "unreachable", "%s", gone)
	if gone.Key != "" {
		return f.again("the task may have been stored; the same command with --idempotency-key %s finds it or submits it, never twice", gone.Key)
	}
	return f.again("start a director with signalbox up, or name one with --director")
}

// full matches the sentence about a full queue. Scripts depend on it.
var full = regexp.MustCompile(`(?i)queue is at capacity( \(\d+ tasks\))?`)

func apiFault(e *client.Error) *fault {
	f := &fault{
		exit: exitOf(e), code: e.Body.Error, message: e.Error(), hint: e.Body.Hint,
		retryable: e.Body.Retryable, matches: e.Body.Matches,
	}
	if e.Body.Field != "" && e.Body.Field != "q" && !strings.Contains(f.message, e.Body.Field) { // errors in a query quote the query
		f.message = e.Body.Field + ": " + f.message
	}
	if f.code == "queue_full" {
		if said := full.FindString(f.message); said != "" {
			f.message = strings.ToLower(said)
		}
	}
	if f.hint == "" {
		f.hint = hints[f.code]
	}
	return f
}

// hints are used for errors that have no hint of their own.
var hints = map[string]string{
	"queue_full":   "wait for room with --wait-for-room, or cancel tasks that are no longer needed",
	"unauthorized": "give a token with --token-file or SIGNALBOX_TOKEN; the director's admin makes one with signalbox tokens create",
	"not_found":    "signalbox status and signalbox history list the tasks, signalbox agents the agents",
}

func exitOf(e *client.Error) int {
	switch e.Body.Error {
	case "validation_error", "ambiguous":
		return exitUsage
	case "not_found":
		return exitNotFound
	case "unauthorized", "forbidden", "rate_limited", client.CodeUnproved:
		return exitNotAllowed
	case "queue_full", "agent_busy":
		return exitQueueFull
	case "agent_down", "call_cycle", "call_depth":
		return exitConflict
	case "unavailable":
		return exitUnreachable
	}
	switch e.Status {
	case http.StatusConflict, http.StatusUnprocessableEntity:
		return exitConflict
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitUnreachable
	}
	return exitError
}

// writeJSON writes one indented document.
func writeJSON(w io.Writer, v any) error { return encode(w, v, "  ") }

// writeLine writes one document on one line.
func writeLine(w io.Writer, v any) error { return encode(w, v, "") }

func encode(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}
