package engine

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// RunTokenPrefix starts a run token: "sbxr_QUEUEID.FENCE_MAC". The part before the second
// "_" is a selector: it names the execution and is not secret. Fences are unique, so the
// agent need not be named. Tokens are not stored: any director of the store can make and
// check them.
const RunTokenPrefix = "sbxr_"

// RunToken returns the token by which the run of a claimed task identifies itself. It is
// deterministic and valid until the execution ends (RunOf).
func (e *Engine) RunToken(t *signalbox.Task) string {
	return e.RunTokenOf(RunTokenPrefix + t.ID + "." + strconv.FormatInt(t.Fence, 10))
}

// RunTokenOf returns the token of a selector, whether or not there is such an execution.
func (e *Engine) RunTokenOf(selector string) string {
	return selector + "_" + base64.RawURLEncoding.EncodeToString(e.opts.Sealer.RunMAC(selector))
}

// DirectorsToken returns a secret shared by the directors of this store, by which they
// authenticate each other. No agent or execution gets it.
func (e *Engine) DirectorsToken() string { return e.RunTokenOf(RunTokenPrefix + "directors") }

// ErrRunOver: the token is authentic, but its execution has ended.
var ErrRunOver = signalbox.Errorf(signalbox.CodeUnauthorized, "the token is that of a run which has ended")

// RunOf returns the task whose execution a token identifies.
//
// Errors: CodeUnauthorized if it is not a run token; ErrRunOver, which has that code too;
// those of the store.
func (e *Engine) RunOf(ctx context.Context, token string) (signalbox.Task, error) {
	run, ok := strings.CutPrefix(token, RunTokenPrefix)
	run, _, _ = strings.Cut(run, "_") // the MAC may contain "_"
	if !ok || !hmac.Equal([]byte(token), []byte(e.RunTokenOf(RunTokenPrefix+run))) {
		return signalbox.Task{}, signalbox.Errorf(signalbox.CodeUnauthorized, "the token is not the right one")
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
