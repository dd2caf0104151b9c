package llm

import (
	"fmt"
	"strings"
)

// ModelError is what a model's endpoint says against a request, or what kept
// the request from it. It never has the key in it.
type ModelError struct {
	Status  int    // of HTTP; 0: there was no answer, or it broke off
	Code    string // the vendor's word for it, may be empty
	Message string
	TooLong bool  // the conversation is longer than the model takes
	Err     error // cause; nil where the endpoint answered
}

// Error says what was wrong and what to do.
func (e *ModelError) Error() string {
	var b strings.Builder
	switch {
	case e.TooLong:
		b.WriteString("the conversation is too long for the model")
	case e.Status == 0:
		b.WriteString("the model's answer could not be had")
	default:
		fmt.Fprintf(&b, "the model's endpoint answered %d", e.Status)
	}
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Message != "" {
		b.WriteString(": " + strings.TrimRight(e.Message, ".\n "))
	}
	if hint := e.hint(); hint != "" {
		b.WriteString("; " + hint)
	}
	return b.String()
}

func (e *ModelError) Unwrap() error { return e.Err }

func (e *ModelError) hint() string {
	switch {
	case e.TooLong:
		return "begin a new session"
	case e.Status == 401 || e.Status == 403:
		return "check the API key and what it may do"
	case e.Status == 404:
		return "check the model's name and the base URL"
	case e.Status == 429:
		return "the vendor takes no more requests for now; try again later"
	case e.Status >= 500:
		return "try again later"
	case e.Status == 0 && e.Err != nil:
		return "check the base URL and that the endpoint is there"
	}
	return ""
}
