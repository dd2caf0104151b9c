// Package handshake makes the server end of a connection prove that it knows
// the client's token, before any request is sent over it.
//
// With plain HTTP a bearer token is shown to whoever listens at the address. So
// the first request on each new connection is a proof: both ends compute codes
// (HMAC-SHA256) with a key derived from the token, over a nonce and the dialled
// address. The token itself is not sent. Decision 0024 has the exact bytes.
package handshake
