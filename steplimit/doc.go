// Package steplimit bounds how many tool calls of one step of a model run: a
// step is one turn, in which the model may ask for several tools. Those beyond
// the limit are answered with a text that asks the model to call again, or wait
// for those before them.
package steplimit
