// Package chaos is a TCP proxy for tests that breaks what goes through it, in
// the ways in which networks do: it loses a request or its answer, says a
// request twice, delays, cuts in half, resets, drips, and partitions one way or
// both. It breaks either what a test tells it to (Strike), or one thing after
// the other by a seed (Options.Pace), and counts what it did, so that a test can
// insist on having seen each.
package chaos
