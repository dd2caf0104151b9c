// Package client is the Go SDK for the director's HTTP API: one method for
// each route of [github.com/signalbox-ai/signalbox/api.Routes]. It imports only
// the standard library.
//
//	c, err := client.New("http://127.0.0.1:8080", client.Options{Token: token})
//	...
//	job, err := c.Submit(ctx, api.SubmitRequest{Prompt: "review the open pull request"}, client.SubmitOptions{})
//	...
//	task, err := c.Wait(ctx, job.QueueID)
//
// or, for a turn of an agent's conversation,
//
//	reply, err := c.Chat(ctx, "coder", api.ChatRequest{Message: "and now the tests"}, client.ChatOptions{})
//
// # Errors
//
// An error answer is returned as an *[Error]: the director's code and message with
// the HTTP status. If there is no answer, the error is an *[UnreachableError],
// which says whether the request may have arrived. If the caller's context ends,
// its error is returned unchanged. A chat that was refused or did not complete is
// a *[ChatError], which unwraps to an *[Error].
//
// # Lost replies
//
// [Client.Submit] and [Client.Retry] send an Idempotency-Key: the caller's, or a
// random one. They repeat a request whose reply was lost, with the same key and
// body, so that a lost reply neither loses nor duplicates a task. [Client.Chat],
// [Client.Bypass] and their streams do the same for as long as they wait.
//
// # Restarts of the director
//
// [Client.Wait], [Client.FollowOutput] and [Client.Events] survive restarts of the
// director: they retry with a growing delay and continue where they stopped. They
// give up when [Options.Patience] has passed without any answer.
package client
