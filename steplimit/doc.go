// Package steplimit bounds how many tool calls of one step of a model run: a
// step is one turn, in which the model may ask for several tools. Those beyond
// the limit are answered with a text that asks the model to call again, or wait
// for those before them.
//
//	limiter, err := steplimit.New(steplimit.Options{Max: 3})
//	for step := 1; ; step++ {
//		calls := ask(model, conversation)
//		if len(calls) == 0 {
//			break
//		}
//		for _, r := range limiter.Run(ctx, step, calls, execute) {
//			conversation = append(conversation, toolMessage(r.Call.ID, r.Text))
//		}
//	}
//
// Who has an SDK that runs the loop and calls the tools one by one puts Steps
// around each tool instead:
//
//	steps := limiter.Steps()
//	r := steps.Do(ctx, len(messages), call, execute) // in each tool
//
// # What counts
//
// The calls of a step are counted in their order, from 1 in each step. With
// the policy Reject the first Max run, all side by side, and those beyond are
// refused, also when the first have long ended: it is a quota, which tells the
// model to ask for less at a time. With Queue all run, Max at once, in order.
//
// Calls that need a person's approval are split off before that and use up
// nothing of the limit. Those that are approved run in a line of their own, Max
// at once; none of them is refused, for a person has said yes. Exempt calls do
// not count and never wait.
//
// # Log
//
// The lines are those of the seed parallel-tool-execution, so that what reads
// them there reads them here; Options.Prefix is their first word. Those about
// a queued, failed, unapproved or aborted call are ours.
//
//	[streamChat] Step 5, Tool 1/3: web_search (ID: call_abc123)
//	[streamChat] Executing tool: web_search (ID: call_abc123)
//	[streamChat] Tool execution completed: web_search (ID: call_abc123)
//	[streamChat] Step 5, Tool 4/3: literature_search (ID: call_def456)
//	[streamChat] Tool call literature_search (ID: call_def456) exceeds parallel limit (3). Returning rate limit error.
//
// Arguments and answers are never logged.
package steplimit
