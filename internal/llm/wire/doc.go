// Package wire is what the models' protocols have in common: names and IDs
// that vendors accept, limits on their answers, and errors without secrets.
package wire
