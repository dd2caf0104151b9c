// Package wire is what the models' protocols have in common: names and ids
// that vendors take, bounds on what they answer, and errors without secrets.
package wire
