package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

const address = "127.0.0.1:8080"

func question(token string) api.ProveRequest {
	return handshake.Question(token, strings.Repeat("07", 32), address)
}

// prove asks for a proof on a connection that was made to the director's address.
func (b *box) prove(q api.ProveRequest, edits ...edit) reply {
	b.t.Helper()
	return b.do("POST", handshake.Path, text(b.t, q), append([]edit{localAddr(address)}, edits...)...)
}

func TestADirectorProvesTheTokensThatItKnows(t *testing.T) {
	b := newBox(t, withToken)
	made := b.token(identity.NewToken{Name: "coder", Agent: "coder"})
	seen := map[string]bool{}
	for _, token := range []string{secret, made} {
		var proof api.Proof
		b.prove(question(token)).want(t, http.StatusOK, &proof)
		if len(proof.MAC) != 64 || seen[proof.MAC] || proof.MAC == question(token).MAC {
			t.Errorf("the proof is %q", proof.MAC)
		}
		seen[proof.MAC] = true
	}
	for _, q := range []api.ProveRequest{question(secret + "x"), question(made + "x"), question("sbxa_0123456789abcdef_" + strings.Repeat("x", 43)), {}} {
		b.prove(q, from("192.0.2.1:7")).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
}

// Who listens at another port of the host, or of another address of it, gets no
// proof to show.
func TestAttackAProofIsForTheAddressThatWasDialled(t *testing.T) {
	b := newBox(t, withToken)
	q := handshake.Question(secret, strings.Repeat("07", 32), "127.0.0.1:9999")
	b.prove(q, from("127.0.0.1:5")).wantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.prove(q, localAddr("192.0.2.9:8080"), from("192.0.2.9:5")).wantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.prove(q, localAddr("172.17.0.2:8080"), from("172.17.0.1:5")).want(t, http.StatusOK, nil) // through a container's port
}

// Guesses are counted as wrong tokens are, and do not hold up who is right.
func TestAttackGuessingByProofs(t *testing.T) {
	b := newBox(t, withToken)
	made := b.token(identity.NewToken{Name: "coder", Agent: "coder"})
	for range 10 {
		b.prove(question("guess"), from("192.0.2.1:7")).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	b.prove(question("guess"), from("192.0.2.1:7")).wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	b.do("GET", "/status", "", bearer("guess"), from("192.0.2.1:7")).wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	b.prove(question(made), from("192.0.2.1:7")).want(t, http.StatusOK, nil)
}

// A run's token is proved by what its selector says, so that each director of
// the store can; after the run too, whose request then hears that it is over.
func TestADirectorProvesTheTokensOfRuns(t *testing.T) {
	b := newBox(t, withToken)
	a := b.agent("coder", 1)
	b.do("POST", "/api/queue/task", `{"prompt":"p"}`, bearer(secret)).want(t, http.StatusCreated, nil)
	run := b.work(a)
	token := b.engine.RunToken(&run)
	if got := handshake.Selector(token); got != "sbxr_"+run.ID+".1" || strings.Count(token, got) != 1 {
		t.Fatalf("%s is named %q", token, got)
	}
	stranger := from("192.0.2.1:7")
	b.prove(question(token), stranger).want(t, http.StatusOK, nil)
	for _, wrong := range []string{token + "A", strings.Replace(token, ".1_", ".2_", 1), "sbxr_" + run.ID + ".1_" + strings.Repeat("A", 43)} {
		b.prove(question(wrong), stranger).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	b.do("GET", "/api/me", "", bearer(token)).want(t, http.StatusOK, nil)
	b.finish(run, signalbox.ReasonCompleted, signalbox.Result{})
	for range 20 { // which are no guesses: they are not counted as wrong
		b.prove(question(token), stranger).want(t, http.StatusOK, nil)
		b.do("GET", "/api/me", "", bearer(token), stranger).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
}
