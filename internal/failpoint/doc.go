// Package failpoint lets things go wrong at named points of a program: before
// and after each verb of the store that changes something, each request that is
// sent, each call of a tool, and each answer that is given.
//
// Nothing in the product knows of it. Points are put in by wrappers, of a store
// (Wrap), a transport, a listener and a provider of tools, where the parts are
// wired together, and only in a binary that is built with the tag failpoints.
// The simulation uses Wrap without any tag.
//
// Which points do what is said by two variables of the environment:
//
//	SIGNALBOX_FAILPOINTS=store.Submit.after=kill,agent.offer.before=error@2
//	SIGNALBOX_FAILPOINTS_FIRED=/path/to/file
//
// A point acts once, when it is reached for the first time (or, with @2, the
// second), and notes its name and what it did in the file before.
package failpoint
