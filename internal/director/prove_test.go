package director_test

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
