// Package handshake has the end that accepts a connection prove that it knows
// the token of the end that made it, before any request is sent over it.
//
// A bearer token over plain HTTP is shown to whoever listens at the address. So
// the first request on each new connection is a proof: both ends compute codes
// (HMAC-SHA256) with a key that is made from the token, over a nonce and the
// address that was dialled. The token itself is not sent. Decision 0024 has the
// exact bytes.
package handshake
