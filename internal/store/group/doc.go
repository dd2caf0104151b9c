// Package group batches verbs for a store's one writer, so that all waiting verbs share a
// commit: group commit.
//
//	Do ─▶ Inbox ─Take─▶ Batch ─▶ the writer runs its verbs and commits ─Answer─▶ Do
//
// A verb is whatever the writer can run. The package knows neither what it does nor where it is
// stored.
package group
