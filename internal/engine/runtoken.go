package engine

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// RunTokenPrefix begins the token of a run: "sbxr_QUEUEID.FENCE_MAC". The part
// before the second "_" names the execution and is no secret: it is the selector
// by which the token is proved on a new connection. A fence is given once only,
// so the agent need not be named. Nothing of it is stored: each director of the
// store can make and check it.
const RunTokenPrefix = "sbxr_"

// RunToken returns the token with which a claimed task's run shows which
// execution it is. It is the same each time it is asked for, and counts as long
// as the execution lasts (RunOf).
func (e *Engine) RunToken(t *signalbox.Task) string {
	return e.RunTokenOf(RunTokenPrefix + t.ID + "." + strconv.FormatInt(t.Fence, 10))
}

// RunTokenOf returns the token of a selector, whether or not there is or was
// such an execution.
func (e *Engine) RunTokenOf(selector string) string {
	return selector + "_" + base64.RawURLEncoding.EncodeToString(e.opts.Sealer.RunMAC(selector))
}

// DirectorsToken returns what only the directors of this store know, by which one
// proves to another that it is one. It is sent to nobody, and no execution has it.
func (e *Engine) DirectorsToken() string { return e.RunTokenOf(RunTokenPrefix + "directors") }

var errNoRunToken = signalbox.Errorf(signalbox.CodeUnauthorized, "the token is not the right one")

// ErrRunOver says that a token is right, but its execution has ended.
var ErrRunOver = signalbox.Errorf(signalbox.CodeUnauthorized, "the token is that of a run which has ended")

// RunOf returns the task to whose execution a token belongs.
//
// Errors: CodeUnauthorized where it is no token of a run; ErrRunOver, which has
// that code too; those of the store.
func (e *Engine) RunOf(ctx context.Context, token string) (signalbox.Task, error) {
	run, ok := strings.CutPrefix(token, RunTokenPrefix)
	run, _, _ = strings.Cut(run, "_") // a MAC may have more of them
	if !ok || !hmac.Equal([]byte(token), []byte(e.RunTokenOf(RunTokenPrefix+run))) {
		return signalbox.Task{}, errNoRunToken
	}
	id, fence, _ := strings.Cut(run, ".")
	t, err := e.store.Task(ctx, id)
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound:
		return t, ErrRunOver
	case err != nil:
		return t, err
	case !t.State.InFlight() || strconv.FormatInt(t.Fence, 10) != fence:
		return signalbox.Task{}, ErrRunOver
	}
	return t, nil
}
