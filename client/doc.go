// Package client is the Go SDK over the director's HTTP API: one method for
// each route of [github.com/signalbox-ai/signalbox/api.Routes]. It needs the
// standard library only.
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
// An answer that is not a success is an *[Error]: the director's own code and
// message with the HTTP status. No answer at all is an *[UnreachableError],
// which says whether the request may have arrived. When the caller's context
// ends, its error is returned as it is. A chat that was refused or did not
// complete is a *[ChatError], which is an *[Error] too.
//
// # Lost replies
//
// [Client.Submit] and [Client.Retry] send an Idempotency-Key, one that they
// make themselves where the caller gives none, and repeat a request whose
// reply was lost with the same key and the same body. So a lost reply neither
// loses a task nor doubles it. [Client.Chat], [Client.Bypass] and their
// streams do the same for as long as they wait.
//
// # Restarts of the director
//
// [Client.Wait], [Client.FollowOutput] and [Client.Events] outlive the
// director: they try again, with a growing delay, and go on where they
// stopped. They give up when [Options.Patience] has passed without any answer.
package client
