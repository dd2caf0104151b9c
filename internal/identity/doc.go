// Package identity knows who asks: tokens, users and logins. It proves a
// secret to be that of a signalbox.Principal, and keeps the rules about who
// may be made and removed. What a principal may do is the director's matter.
//
// What it needs at every request stands in memory: a request costs a hash and
// a look into a map, and no read of the store. A change made here counts at
// once; one made by another director after RefreshEvery at the latest.
package identity
