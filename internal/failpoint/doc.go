// Package failpoint injects failures at named points of a program: before and after each verb of the store
// that changes something, each outgoing request, each call of a tool, and each answer.
//
// The product does not know the points. Wrappers add them, to a store (Wrap), a transport, a listener and a
// provider of tools, where these parts are wired together, and only in a binary that is built with the tag
// failpoints. The simulation uses Wrap without a tag.
//
// Two environment variables select the points and their actions:
//
//	SIGNALBOX_FAILPOINTS=store.Submit.after=kill,agent.offer.before=error@2
//	SIGNALBOX_FAILPOINTS_FIRED=/path/to/file
//
// A point acts once, when it is reached for the first time (or, with @2, the second). Before it acts, it
// writes its name and action to the file.
package failpoint
