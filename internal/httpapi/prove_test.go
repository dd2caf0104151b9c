package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

const address = "127.0.0.1:8080"

func question(token string) api.ProveRequest {
	return handshake.Question(token, strings.Repeat("07", 32), address)
}

// proveAgent requests a proof on a connection to the director's address.
func proveAgent(b *apitest.Fixture, q api.ProveRequest, edits ...apitest.Edit) apitest.Reply {
	b.T.Helper()
	return b.Do("POST", handshake.Path, text(b.T, q), append([]apitest.Edit{localAddr(address)}, edits...)...)
}

func TestADirectorProvesTheTokensThatItKnows(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	made := b.AddToken(identity.NewToken{Name: "coder", Agent: "coder"})
	seen := map[string]bool{}
	for _, token := range []string{apitest.Secret, made} {
		var proof api.Proof
		proveAgent(b, question(token)).Want(t, http.StatusOK, &proof)
		if len(proof.MAC) != 64 || seen[proof.MAC] || proof.MAC == question(token).MAC {
			t.Errorf("the proof is %q", proof.MAC)
		}
		seen[proof.MAC] = true
	}
	for _, q := range []api.ProveRequest{question(apitest.Secret + "x"), question(made + "x"), question("sbxa_0123456789abcdef_" + strings.Repeat("x", 43)), {}} {
		proveAgent(b, q, apitest.From("192.0.2.1:7")).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
}

// A program that listens on another port or another address of the host cannot get a proof.
func TestAttackAProofIsForTheAddressThatWasDialled(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	q := handshake.Question(apitest.Secret, strings.Repeat("07", 32), "127.0.0.1:9999")
	proveAgent(b, q, apitest.From("127.0.0.1:5")).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	proveAgent(b, q, localAddr("192.0.2.9:8080"), apitest.From("192.0.2.9:5")).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	proveAgent(b, q, localAddr("172.17.0.2:8080"), apitest.From("172.17.0.1:5")).Want(t, http.StatusOK, nil) // through a container's port
}

// Guesses count like wrong tokens, and do not delay right ones.
func TestAttackGuessingByProofs(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	made := b.AddToken(identity.NewToken{Name: "coder", Agent: "coder"})
	for range 10 {
		proveAgent(b, question("guess"), apitest.From("192.0.2.1:7")).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	proveAgent(b, question("guess"), apitest.From("192.0.2.1:7")).WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	b.Do("GET", "/status", "", apitest.Bearer("guess"), apitest.From("192.0.2.1:7")).WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	proveAgent(b, question(made), apitest.From("192.0.2.1:7")).Want(t, http.StatusOK, nil)
}

// A run's token is proved by its selector, so every director of the store can do it, even after
// the run: then the request is told that the run has ended.
func TestADirectorProvesTheTokensOfRuns(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	a := b.AddAgent("coder", 1)
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, apitest.Bearer(apitest.Secret)).Want(t, http.StatusCreated, nil)
	run := b.Run(a)
	token := b.Engine.Options().Sealer.RunToken(run.ID, run.Fence)
	if got := handshake.Selector(token); got != "sbxr_"+run.ID+".1" || strings.Count(token, got) != 1 {
		t.Fatalf("%s is named %q", token, got)
	}
	stranger := apitest.From("192.0.2.1:7")
	proveAgent(b, question(token), stranger).Want(t, http.StatusOK, nil)
	for _, wrong := range []string{token + "A", strings.Replace(token, ".1_", ".2_", 1), "sbxr_" + run.ID + ".1_" + strings.Repeat("A", 43)} {
		proveAgent(b, question(wrong), stranger).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	b.Do("GET", "/api/me", "", apitest.Bearer(token)).Want(t, http.StatusOK, nil)
	b.FinishTask(run, signalbox.ReasonCompleted, signalbox.Result{})
	for range 20 { // these do not count as guesses
		proveAgent(b, question(token), stranger).Want(t, http.StatusOK, nil)
		b.Do("GET", "/api/me", "", apitest.Bearer(token), stranger).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
}
