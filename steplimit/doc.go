// Package steplimit limits how many tool calls run in one step of a model. A step
// is one turn, in which the model may ask for several tools. Calls beyond the
// limit either get a text that asks the model to call again, or wait for the
// calls before them.
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
// If an SDK runs the loop and calls the tools one by one, wrap each tool with Steps
// instead:
//
//	steps := limiter.Steps()
//	r := steps.Do(ctx, len(messages), call, execute) // in each tool
//
// # What counts
//
// The calls of a step are counted in order, from 1 in each step. With the policy
// Reject the first Max calls run concurrently, and all others are refused, even if
// the first ones have already ended: it is a quota that makes the model ask for
// less at a time. With Queue all calls run, at most Max at once, in order.
//
// Calls that need a person's approval do not count. Approved calls wait in a
// separate line, at most Max at once, and are never refused. Exempt calls do not
// count and never wait.
//
// # Log
//
// The lines have the format of the seed parallel-tool-execution, so that existing
// parsers keep working; Options.Prefix is their first word. The lines about queued,
// failed, unapproved and aborted calls are additions.
//
//	[streamChat] Step 5, Tool 1/3: web_search (ID: call_abc123)
//	[streamChat] Executing tool: web_search (ID: call_abc123)
//	[streamChat] Tool execution completed: web_search (ID: call_abc123)
//	[streamChat] Step 5, Tool 4/3: literature_search (ID: call_def456)
//	[streamChat] Tool call literature_search (ID: call_def456) exceeds parallel limit (3). Returning rate limit error.
//
// Arguments and answers are never logged.
package steplimit
