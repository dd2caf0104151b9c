package api

// ProveRequest asks the other end of a connection to prove that it knows a
// token. It is the first request on the connection.
type ProveRequest struct {
	Selector string `json:"selector"` // which token: its public part (sbxa_ID), else 16 hex digits of a hash
	Nonce    string `json:"nonce"`    // 32 random bytes in hex, new for each connection
	Address  string `json:"address"`  // IP:PORT that the connection was made to, as who makes it sees it
	MAC      string `json:"mac"`      // HMAC-SHA256 in hex, key of the token, over "client\n" nonce "\n" address
}

// Proof is the answer: HMAC-SHA256 in hex, with the same key, over "server\n"
// nonce "\n" address.
type Proof struct {
	MAC string `json:"mac"`
}
