package mutants

// The incidents of execution-queue about rows, slots and times.
var executionMutants = []Mutant{
	{
		Name: "chat-called-at-once", Fault: "execution-queue chat",
		Text: "a chat that should wait in the queue runs at once, beside the running task",
		File: "internal/engine/submit.go",
		Edits: []Edit{{
			"case n.Mode == signalbox.ModeBypass, n.Mode == signalbox.ModeLand:\n\t\treturn signalbox.BypassQueue(n.Agent)",
			"case n.Mode == signalbox.ModeBypass, n.Mode == signalbox.ModeLand, n.Mode == signalbox.ModeChat:\n\t\treturn signalbox.BypassQueue(n.Agent)",
		}},
		Package: "internal/engine", Tests: []string{"TestChatReceiptTellsItsPosition", "TestOverflowPolicies"},
	},
	{
		Name: "anyone-frees-the-slot", Fault: "execution-queue complete",
		Text: "the end of an execution frees its slot even if another execution holds it by then",
		File: "internal/store/verbs/slots.go",
		Edits: []Edit{{
			"r != nil && r.slot != nil && r.slot.Fence == fence {",
			"r != nil && r.slot != nil {",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/slots", "TestConformance/rules/apply", "TestConformance/rules/lease"},
	},
	{
		Name: "nobody-follows-after-a-restart", Fault: "execution-queue stuck",
		Text: "after a restart nothing follows the tasks that were in flight",
		File: "internal/execution/push/adopt.go",
		Edits: []Edit{{
			"r.startClocks()\n\td.start(r, (*run).resume)",
			"r.startClocks()",
		}},
		Package: "internal/execution/push", Tests: []string{"TestStopLeavesRowsInFlight"},
	},
	{
		Name: "slot-freed-while-it-runs", Fault: "execution-queue split",
		Text: "a task gives its slot back when its agent accepts it, while it runs",
		File: "next.go",
		Edits: []Edit{{
			"t.TaskID, t.StartedAt = ev.TaskID, latest(ev.Now, t.DispatchedAt)",
			"c.Slot = SlotFree\n\tt.TaskID, t.StartedAt = ev.TaskID, latest(ev.Now, t.DispatchedAt)",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "silence-never-ends", Fault: "execution-queue reclaim",
		Text: "the slot of an unreachable agent is freed only when it answers, which it never does",
		File: "internal/execution/push/follow.go",
		Edits: []Edit{{
			"case r.silence() >= r.d.Engine.Options().ExecutionTTL:\n\t\t\tr.lose(",
			"case err == nil && r.silence() >= r.d.Engine.Options().ExecutionTTL:\n\t\t\tr.lose(",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentReclaimDeferredWhileAgentUnreachable"},
	},
	{
		Name: "twenty-minutes-are-enough", Fault: "execution-queue ttl",
		Text: "a run without a timeout of its own is ended after 20 minutes",
		File: "internal/execution/limits.go",
		Edits: []Edit{{
			"if timeout > 0 && p.Ran >= timeout+l.Grace {",
			"if timeout := max(timeout, 20*time.Minute); p.Ran >= timeout+l.Grace {",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentFixedTTLKillsHonestLongRun"},
	},
	{
		Name: "waiting-counts-as-running", Fault: "execution-queue hidden",
		Text: "the duration of a run counts from the submit",
		File: "next.go",
		Edits: []Edit{{
			"t.TaskID, t.StartedAt = ev.TaskID, latest(ev.Now, t.DispatchedAt)",
			"t.TaskID, t.StartedAt = ev.TaskID, t.CreatedAt",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "failed-becomes-success", Fault: "execution-queue flicker",
		Text: "a failed task accepts a later success",
		File: "next.go",
		Edits: []Edit{
			{"if t.State.Terminal() {", "if t.State.Terminal() && !(t.State == Failed && ev.Kind == EventFinish) {"},
			{"EventFinish: {fenced: true, from: moves{", "EventFinish: {fenced: true, from: moves{Failed: finish, "},
		},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "cancelled-is-a-success", Fault: "execution-queue cancelled",
		Text: "a cancelled run counts as completed because its program exited with 0",
		File: "internal/execution/outcome.go",
		Edits: []Edit{{
			"case s.State == \"completed\" && !abortedKinds[kind]:",
			"case s.State == \"completed\":",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentCancelledRecordedAsSuccess"},
	},
	{
		Name: "drain-looks-elsewhere", Fault: "execution-queue drain",
		Text: "waiters of the shared queue are looked up under its former name",
		File: "internal/execution/claim.go",
		Edits: []Edit{{
			"} else if queue != signalbox.QueueWork {",
			"} else if queue != \"backlog\" {",
		}},
		Package: "internal/execution/push", Tests: []string{"TestNoTaskWaitsBesideFreeSlot"},
	},
	{
		Name: "backlog-shut-to-chats", Fault: "execution-queue refusals",
		Text: "a chat that may wait in the backlog is refused when the queue of its agent is full",
		File: "internal/engine/submit.go",
		Edits: []Edit{{
			"case n.Mode == signalbox.ModeChat && n.Overflow != signalbox.OverflowPersist:",
			"case n.Mode == signalbox.ModeChat:",
		}},
		Package: "internal/engine", Tests: []string{"TestOverflowPolicies"},
	},
	{
		Name: "smaller-timeout-counts", Fault: "execution-queue timeouts",
		Text: "the smaller of the task's timeout and the agent's default applies",
		File: "internal/agentd/validate.go",
		Edits: []Edit{{
			"j.timeout, j.limit = time.Duration(t.TimeoutSeconds)*time.Second, ",
			"j.timeout, j.limit = min(j.timeout, time.Duration(t.TimeoutSeconds)*time.Second), ",
		}},
		Package: "internal/agentd", Tests: []string{"TestIncidentSilentMinOfTimeouts"},
	},
	{
		Name: "stall-called-timeout", Fault: "execution-queue stall",
		Text: "a stalled run ends with the reason of a timeout",
		File: "internal/execution/limits.go",
		Edits: []Edit{{
			"return signalbox.ReasonStalled, message",
			"return signalbox.ReasonRunTimeout, message",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentStallLabelledTimeout"},
	},
	{
		Name: "empty-message", Fault: "execution-queue empty",
		Text: "a task ends with an empty message",
		File: "ending.go",
		Edits: []Edit{{
			"t.State, t.Reason, t.Message = reason.End(), reason, cmp.Or(message, plain[reason])",
			"t.State, t.Reason, t.Message = reason.End(), reason, message",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "durations-below-zero", Fault: "execution-queue clock",
		Text: "after the clock went back a task ends before it began",
		File: "ending.go",
		Edits: []Edit{{
			"if e.After(now) {",
			"if e.After(now) && e.IsZero() {",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "edit-swallows-a-firing", Fault: "execution-queue boundary",
		Text: "a firing that is skipped because of a running task leaves no record",
		File: "internal/schedule/firing.go",
		Edits: []Edit{{
			"case signalbox.OverlapSkip:\n\t\treturn false, t.end(f, signalbox.SkippedBusy, \"\", fmt.Sprintf(\"the task before, %s, has not ended\", before))",
			"case signalbox.OverlapSkip:\n\t\tf.retryAt = now.Add(heldInterval)\n\t\treturn false, nil",
		}},
		Package: "internal/schedule", Tests: []string{"TestIncidentSilentSkipAtTheScheduleBoundary"},
	},
}
