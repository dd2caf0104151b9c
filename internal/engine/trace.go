package engine

import "context"

// SubmitTrace makes the span of a submit: of what ctx carries, or, where that
// is nothing, of the execution that makes the call (parent, "" for none). It
// returns the traceparent to store with the task, and what is to be told of how
// the submit ended.
type SubmitTrace func(ctx context.Context, parent string) (trace string, ended func(Receipt, error))

// TraceSubmits has f make the spans of submits. Call it before the engine is
// used.
func (e *Engine) TraceSubmits(f SubmitTrace) { e.trace = f }
