// Package llm is the loop around a model that calls tools: stream a turn, run
// the requested tools under the step limit, send their answers, until the model
// requests none. It knows neither the model's protocol nor where the tools are:
// those are a Model and a Toolset.
//
//	store, err := llm.OpenStore(dir)
//	history, err := store.Load(session)
//	loop := llm.Loop{Model: openai.New(…), Tools: tools, Limit: steplimit.Options{Max: 3}}
//	out, err := loop.Run(ctx, llm.Input{Model: "…", History: history, Prompt: prompt})
//	store.Save(session, out.Messages) // also after an error
//
// However a run ends, the returned conversation can be continued at either
// vendor: each tool call has one answer, directly after it and in order.
// Mistakes of a model or a tool (an unknown tool, arguments that are not JSON,
// a failure, a panic) are reported to the model and never end the run.
package llm
