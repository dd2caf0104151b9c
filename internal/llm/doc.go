// Package llm is the loop around a model that calls tools: stream a turn, run
// the tools it asks for under the step limit, tell it what they answered, until
// it asks for none. It knows neither a model's protocol nor where tools are:
// those are a Model and a Toolset.
//
//	store, err := llm.OpenStore(dir)
//	history, err := store.Load(session)
//	loop := llm.Loop{Model: openai.New(…), Tools: tools, Limit: steplimit.Options{Max: 3}}
//	out, err := loop.Run(ctx, llm.Input{Model: "…", History: history, Prompt: prompt})
//	store.Save(session, out.Messages) // also after an error
//
// However a run ends, the conversation that it returns can be gone on with at
// either vendor: each tool call has one answer, right after it and in order.
// What a model or a tool does wrong (no such tool, arguments that are no JSON,
// a failure, a panic) is told to the model and never ends the run.
package llm
