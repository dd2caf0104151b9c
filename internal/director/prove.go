package director

import (
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// prove is POST /.well-known/signalbox/prove: the director proves that it knows
// a token to who proves the same. Wrong questions count as wrong tokens do.
func (d *Director) prove(w http.ResponseWriter, r *http.Request) error {
	var q api.ProveRequest
	if err := decode(w, r, &q, false); err != nil {
		return err
	}
	proof, err := d.gate.prove(r, q)
	if err != nil {
		return err
	}
	d.answer(w, http.StatusOK, proof)
	return nil
}

func (g gate) prove(r *http.Request, q api.ProveRequest) (api.Proof, error) {
	key, guessable, err := g.connectionKey(q.Selector)
	if err != nil {
		return api.Proof{}, err
	}
	addr := callerFrom(r).addr
	block := identity.AddrBlock(addr)
	wait := g.bad.wait(block, time.Now())
	proof, outcome := handshake.Answer(r, q, key)
	switch {
	case outcome != handshake.Unknown && guessable && wait > 0, outcome == handshake.Unknown && wait > 0:
		return api.Proof{}, tooManyWrong(addr, wait)
	case outcome == handshake.Proved:
		return proof, nil
	case outcome == handshake.Relayed:
		return api.Proof{}, refuse(signalbox.CodeConflict, "ask at the director's own address, or by https",
			"the connection was made to another address than the one at which it arrived: something stands in between")
	}
	g.bad.note(block, time.Now())
	return api.Proof{}, signalbox.Errorf(signalbox.CodeUnauthorized, "this director does not know that token")
}

// connectionKey returns the key of the token that a selector names, as
// identity.Keeper.ConnectionKey does; that of a run's token is made from the
// selector alone, also after the run, whose request then says that it is over.
func (g gate) connectionKey(selector string) (handshake.Key, bool, error) {
	if strings.HasPrefix(selector, engine.RunTokenPrefix) {
		return handshake.KeyOf(g.engine.RunTokenOf(selector)), false, nil
	}
	return g.id.ConnectionKey(selector)
}
