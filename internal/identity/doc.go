// Package identity knows who asks: tokens, users and logins. It proves a
// secret to be that of a signalbox.Principal, and keeps the rules about who
// may be made and removed. What a principal may do is the director's matter.
//
// What it needs at every request stands in memory: a request costs a hash and
// a look into a map, and no read of the store. A change made here counts at
// once; one made by another director within UnseenFor, and a token or login that
// it made at once: one that is not known is looked for before it is refused.
package identity
