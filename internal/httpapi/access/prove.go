package access

import (
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/seal"
)

// Prove is POST /.well-known/signalbox/prove: the director proves that it knows a token, to
// a caller that proves the same. Failed attempts count as wrong tokens.
func (g *Gate) Prove(w http.ResponseWriter, r *http.Request) error {
	var q api.ProveRequest
	if err := httpio.Decode(w, r, &q, false); err != nil {
		return err
	}
	proof, err := g.prove(r, q)
	return httpio.AnswerOr(w, proof, err)
}

func (g *Gate) prove(r *http.Request, q api.ProveRequest) (api.Proof, error) {
	key, guessable, err := g.connectionKey(q.Selector)
	if err != nil {
		return api.Proof{}, err
	}
	addr := callerFrom(r).Addr
	block := identity.AddrBlock(addr)
	wait := g.guesses.Wait(block, 1, time.Now())
	proof, outcome := handshake.Answer(r, q, key)
	switch {
	case outcome != handshake.Unknown && guessable && wait > 0, outcome == handshake.Unknown && wait > 0:
		return api.Proof{}, tooManyWrong(addr, wait)
	case outcome == handshake.Proved:
		return proof, nil
	case outcome == handshake.Relayed:
		return api.Proof{}, httpio.Refuse(signalbox.CodeConflict, "use the director's own address, or https",
			"the connection was made to another address than the one at which it arrived: there is a proxy in between")
	}
	g.guesses.Add(block, 1, time.Now())
	return api.Proof{}, signalbox.Errorf(signalbox.CodeUnauthorized, "this director does not know that token")
}

// connectionKey is identity.Keeper.ConnectionKey, also for tokens of runs. Their keys are
// derived from the selector, even after the run has ended: then its requests are refused
// with the reason.
func (g *Gate) connectionKey(selector string) (handshake.Key, bool, error) {
	if strings.HasPrefix(selector, seal.RunTokenPrefix) {
		return handshake.KeyOf(g.engine.Options().Sealer.RunTokenOf(selector)), false, nil
	}
	return g.id.ConnectionKey(selector)
}
