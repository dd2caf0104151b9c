package mutants

// The faults of tool-queue-manager.
var toolQueueMutants = []Mutant{
	{
		Name: "wait-without-bound", Fault: "tool-queue-manager wait",
		Text: "the maximum wait of a queue is not enforced",
		File: "toolqueue/acquire.go",
		Edits: []Edit{{
			"if c.MaxWait > 0 && (maxWait <= 0 || c.MaxWait < maxWait) {",
			"if c.MaxWait > 0 && maxWait <= 0 {",
		}},
		Package: "toolqueue", Tests: []string{"TestIncidentUnboundedWait"},
	},
	{
		Name: "wait-outside-of-the-timeout", Fault: "tool-queue-manager wait",
		Text: "a tool's timeout does not include the wait for a slot",
		File: "internal/gateway/refused.go",
		Edits: []Edit{{
			"bound := u.entry.waitBound\n",
			"bound := u.entry.waitBound * 0\n",
		}},
		Package: "internal/gateway", Tests: []string{"TestIncidentWaitOutsideToolTimeout"}, Hangs: true,
	},
	{
		Name: "line-without-end", Fault: "tool-queue-manager waiters",
		Text: "no call is refused, however many wait",
		File: "toolqueue/acquire.go",
		Edits: []Edit{{
			"most > 0 && q.depth >= most:",
			"most > 0 && q.depth >= 1000*most:",
		}},
		Package: "toolqueue", Tests: []string{"TestMaxWaiters", "TestIncidentUnboundedWaiters"}, Hangs: true,
	},
	{
		Name: "queued-told-after-the-wait", Fault: "tool-queue-manager queued",
		Text: "the log line \"queued\" is written after the wait",
		File: "toolqueue/acquire.go",
		Edits: []Edit{
			{"if q.hooks.Queued != nil {\n\t\tq.hooks.Queued(q.name, t.who, t.depth, t.concurrent)\n\t}\n", ""},
			{"p, err := t.finish(ctx, t.sleep(ctx))\n", "p, err := t.finish(ctx, t.sleep(ctx))\n\tif q.hooks.Queued != nil {\n\t\tq.hooks.Queued(q.name, t.who, t.depth, t.concurrent)\n\t}\n"},
		},
		Package: "toolqueue", Tests: []string{"TestIncidentQueuedLineAfterTheWait"},
	},
	{
		Name: "abort-stays-in-the-depth", Fault: "tool-queue-manager depth",
		Text: "a call that gives up stays in the depth forever",
		File: "toolqueue/acquire.go",
		Edits: []Edit{{
			"q.dequeue(w)\n\t\tq.forget(w.session)",
			"q.dequeue(w)\n\t\tq.setDepth(q.depth + 1)\n\t\tq.forget(w.session)",
		}},
		Package: "toolqueue", Tests: []string{"TestIncidentAbortLeavesDepthStale"},
	},
	{
		Name: "raise-wakes-nobody", Fault: "tool-queue-manager raise",
		Text:    "raising a capacity wakes no waiter",
		File:    "toolqueue/configure.go",
		Edits:   []Edit{{"\t\tq.disarm()\n\t\tq.admit()\n\t} else if", "\t\tq.disarm()\n\t} else if"}},
		Package: "toolqueue", Tests: []string{"TestIncidentRaisedCapacityWakesNobody", "TestRaisingWakesWaiters"},
	},
	{
		Name: "reset-leaves-waiters-behind", Fault: "tool-queue-manager reset",
		Text: "a reconfigured queue is a new one, and its waiters stay in the old one",
		File: "toolqueue/configure.go",
		Edits: []Edit{{
			"if old := all[name]; old != nil {\n\t\t\told.change(",
			"if old := all[name]; old != nil && old.config.Shared {\n\t\t\told.change(",
		}},
		Package: "toolqueue", Tests: []string{"TestIncidentResetAbandonsWaiters", "TestConfigureTwice"},
	},
	{
		Name: "undefined-queue-taken", Fault: "tool-queue-manager undefined",
		Text: "a tool may name a queue that does not exist",
		File: "internal/toolconf/merge.go",
		Edits: []Edit{{
			"if !m.named[r.queue] {",
			"if r.queue == \"\" {",
		}},
		Package: "internal/toolconf", Tests: []string{"TestIncidentUndefinedQueueFailsTheStart"},
	},
}

// The limits and faults of parallel-tool-execution.
var stepMutants = []Mutant{
	{
		Name: "quota-in-place-of-a-line", Fault: "parallel-tool-execution quota",
		Text: "a call beyond the limit is refused even if it could wait",
		File: "steplimit/step.go",
		Edits: []Edit{{
			"if s.l.opt.Policy == Queue {\n\t\t\tt.queue()\n\t\t} else if t.pos > s.limit {",
			"if s.l.opt.Policy == Queue && t.pos <= s.limit {\n\t\t\tt.queue()\n\t\t} else if t.pos > s.limit {",
		}},
		Package: "steplimit", Tests: []string{"TestProperty6", "TestQueuedCallsBeginInTheirOrder"}, Hangs: true,
	},
	{
		Name: "waiting-call-refused", Fault: "parallel-tool-execution turn",
		Text: "a call that had to wait is answered with a refusal, and the model must repeat it",
		File: "steplimit/step.go",
		Edits: []Edit{{
			"defer p.leave()\n",
			"defer p.leave()\n\t\tif p.turn != nil {\n\t\t\treturn t.end(Refused, RefusalText(t.call), nil)\n\t\t}\n",
		}},
		Package: "internal/llm", Tests: []string{"TestIncidentCallBeyondTheLimitCostATurn"},
	},
	{
		Name: "arguments-rewritten", Fault: "parallel-tool-execution raw",
		Text: "the tool gets the arguments serialised anew",
		File: "internal/llm/call.go",
		Edits: []Edit{{
			"args := c.Arguments\n",
			"args := strings.Join(strings.Fields(c.Arguments), \" \")\n",
		}},
		Package: "internal/llm", Tests: []string{"TestIncidentArgumentsWereReserialised"},
	},
	{
		Name: "approval-uses-up-the-limit", Fault: "parallel-tool-execution approval",
		Text: "calls that await approval count against the limit",
		File: "steplimit/step.go",
		Edits: []Edit{{
			"t.kind = asks\n",
			"t.kind = asks\n\t\ts.counted++\n",
		}},
		Package: "steplimit", Tests: []string{"TestApproval", "TestProperty6"},
	},
	{
		Name: "tool-takes-the-process-along", Fault: "parallel-tool-execution crash",
		Text: "a tool that panics crashes the process",
		File: "steplimit/step.go",
		Edits: []Edit{{
			"err = &panicked{value: v, stack: debug.Stack()}",
			"_ = debug.Stack\n\t\t\t\tpanic(v)",
		}},
		Package: "steplimit", Tests: []string{"TestNoToolTakesTheOthersAlong"},
	},
	{
		Name: "calls-left-open", Fault: "parallel-tool-execution abort",
		Text: "an interrupted conversation continues with calls that have no answer",
		File: "internal/llm/run.go",
		Edits: []Edit{{
			"append(Repair(in.History), Message",
			"append(in.History[:len(in.History):len(in.History)], Message",
		}},
		Package: "internal/llm", Tests: []string{"TestIncidentAbortLeftCallsOpen"},
	},
}
