package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// RunTokenPrefix begins a run token: "sbxr_QUEUEID.FENCE_MAC". The part before the second
// "_" is a selector: it names the execution and is not secret. Fences are unique, so the
// agent need not be named. Tokens are not stored: any director of the store can compute
// and check them.
const RunTokenPrefix = "sbxr_"

// RunToken returns the token with which the execution of a task with a fence
// identifies itself. It is deterministic.
func (s *Sealer) RunToken(id string, fence int64) string {
	return s.RunTokenOf(RunTokenPrefix + id + "." + strconv.FormatInt(fence, 10))
}

// RunTokenOf returns the token of a selector, whether or not the execution exists.
func (s *Sealer) RunTokenOf(selector string) string {
	h := hmac.New(sha256.New, s.run)
	h.Write([]byte(selector))
	return selector + "_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// DirectorsToken returns a secret shared by the directors of a store, with which
// they authenticate each other. No agent or execution gets it.
func (s *Sealer) DirectorsToken() string { return s.RunTokenOf(RunTokenPrefix + "directors") }

// RunOf returns the execution that an authentic run token names; ok is false for any other
// token. It does not know whether the execution is still running.
func (s *Sealer) RunOf(token string) (id string, fence int64, ok bool) {
	run, ok := strings.CutPrefix(token, RunTokenPrefix)
	run, _, _ = strings.Cut(run, "_") // the MAC may contain "_"
	if !ok || !hmac.Equal([]byte(token), []byte(s.RunTokenOf(RunTokenPrefix+run))) {
		return "", 0, false
	}
	id, number, _ := strings.Cut(run, ".")
	fence, err := strconv.ParseInt(number, 10, 64)
	return id, fence, err == nil
}
