// Package identity authenticates callers by tokens, users and logins. It maps a
// secret to its signalbox.Principal, and enforces the rules for creating and
// removing tokens and users. What a principal may do is decided by the director.
//
// All data for requests is in memory: a request costs a hash and a map lookup,
// and no read of the store. A change made here takes effect at once, and a change
// made by another director within MaxStaleness. A new token or login of another
// director is accepted at once: an unknown token causes a read of the store
// before it is refused.
package identity
