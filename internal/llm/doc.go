// Package llm is the loop around a model that calls tools: stream a turn, run
// the tools it asks for under the step limit, tell it what they answered, until
// it asks for none. It knows neither a model's protocol nor where tools are:
// those are a Model and a Toolset.
package llm
