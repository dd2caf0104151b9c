package director

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
)

// Headers of a call that an agent makes.
const (
	sourceAgentHeader = "X-Source-Agent"
	executionHeader   = "X-Signalbox-Execution"
)

// callOf returns the execution that makes the call, as its token proves or its
// caller names it; "" where it names none. What the headers say of an agent is believed from
// that agent's own token alone.
func callOf(r *http.Request) (executionID string, err error) {
	who := callerOf(r).who
	isAgent := who.Kind == signalbox.PrincipalAgent
	if says := r.Header.Get(sourceAgentHeader); says != "" && (!isAgent || who.ID != says) {
		return "", refuse(signalbox.CodeForbidden, "leave "+sourceAgentHeader+" out, or show the token of that agent",
			"%s says %s, but the token shown is that of %s", sourceAgentHeader, clip(says), shownBy(who))
	}
	id := r.Header.Get(executionHeader)
	switch {
	case who.Run != "" && id != "" && id != who.Run:
		return "", refuse(signalbox.CodeForbidden, "leave "+executionHeader+" out, for the token says which execution it is",
			"the token shown is that of execution %s, which cannot call as %s", who.Run, clip(id))
	case who.Run != "":
		return who.Run, nil
	case id == "":
		return "", nil
	case !isAgent:
		return "", refuse(signalbox.CodeForbidden, "leave "+executionHeader+" out, or show the token of the agent that runs it",
			"%s is believed from the token of an agent alone, and the token shown is that of %s", executionHeader, shownBy(who))
	case !signalbox.ValidID(id):
		return "", signalbox.Invalid(executionHeader, "%q is not the id of an execution", clip(id))
	}
	return id, nil
}

func shownBy(who signalbox.Principal) string {
	if who.Kind == "" {
		return "nobody"
	}
	return who.String()
}
