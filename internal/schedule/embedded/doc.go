// Package embedded runs a scheduler within the director, on the engine and its store.
package embedded
