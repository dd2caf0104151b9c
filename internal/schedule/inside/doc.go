// Package inside lets a scheduler run within the director: its book is the
// engine's store, its queue the engine.
package inside
