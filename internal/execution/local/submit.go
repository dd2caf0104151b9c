package local

import (
	"context"
	"encoding/json"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// Submit implements gateway.Tasks.
func (x *Executor) Submit(ctx context.Context, c gateway.TaskCall) (gateway.ToolTask, error) {
	tool, err := x.toolFor(c.Call)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	n, err := newTask(&tool, &c)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	got, err := x.engine.Submit(gateway.WithMetaTrace(ctx, c.Meta), n)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	v, err := x.view(ctx, &got.Task, &got.Position)
	v.Replayed = got.Replayed
	if err != nil {
		// The task is stored and must be acknowledged; its view can be read later.
		x.log.Error("a stored tool task could not be read", "queue_id", got.Task.ID, "error", err)
		v = gateway.ToolTask{Task: got.Task, Replayed: got.Replayed}
	}
	return v, nil
}

// toolFor returns the tool of a call, if the call can be a task and its arguments fit.
func (x *Executor) toolFor(c gateway.Call) (gateway.Tool, error) {
	if err := x.gateway.Check(c); err != nil {
		return gateway.Tool{}, err
	}
	tool, there := x.gateway.Tool(c.Tool)
	switch {
	case !there: // it was removed a moment ago
		return tool, signalbox.Errorf(signalbox.CodeToolDown, "The tool %q cannot be called at the moment: try again.", c.Tool)
	case tool.Kind == gateway.KindInternal:
		return tool, signalbox.Errorf(signalbox.CodeUnsupported, "The tool %q is one of the queue's own and answers at once: call it without making a task of the call.", c.Tool)
	}
	return tool, nil
}

// newTask makes the task of a call.
func newTask(tool *gateway.Tool, c *gateway.TaskCall) (engine.NewTask, error) {
	args, secrets, err := splitSecrets(c.Arguments, tool.Secrets)
	if err != nil {
		return engine.NewTask{}, err
	}
	n := engine.NewTask{
		Mode: signalbox.ModeTool, Tool: tool.Name, Arguments: args, Metadata: c.Meta, Secrets: secrets, TimeoutMS: c.Limit.Milliseconds(),
		Calls: !tool.Async, OnLost: signalbox.LostFail, Source: c.Source, Priority: c.Priority, RetryOf: c.RetryOf,
		IdempotencyKey: c.IdempotencyKey, By: c.Caller.Who, CallerID: c.Caller.Execution,
	}
	if tool.Restart.RequeueRunning {
		n.OnLost = signalbox.LostRequeue
	}
	return n, nil
}

// splitSecrets takes the properties that a tool marks as secret out of the arguments.
func splitSecrets(args json.RawMessage, marked []string) (rest json.RawMessage, secrets map[string]string, err error) {
	if len(marked) == 0 || len(args) == 0 {
		return args, nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(args, &all); err != nil {
		return nil, nil, signalbox.Invalid("arguments", "The arguments of a tool must be a JSON object such as {\"name\": \"value\"}.")
	}
	for _, name := range marked {
		value, given := all[name]
		if !given {
			continue
		}
		if secrets == nil {
			secrets = map[string]string{}
		}
		secrets[name] = string(value)
		delete(all, name)
	}
	if secrets == nil {
		return args, nil, nil
	}
	rest, err = json.Marshal(all)
	return rest, secrets, err
}
