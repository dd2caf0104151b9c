package mutants

// The incidents of execution-queue about rows, slots and times.
var executionMutants = []Mutant{
	{
		Name: "chat-called-at-once", Fault: "execution-queue chat",
		Text: "a chat that is told its place in line runs beside the lane at once",
		File: "internal/engine/submit.go",
		Edits: []Edit{{
			"case n.Mode == signalbox.ModeBypass, n.Mode == signalbox.ModeLand:\n\t\treturn signalbox.BypassQueue(n.Agent)",
			"case n.Mode == signalbox.ModeBypass, n.Mode == signalbox.ModeLand, n.Mode == signalbox.ModeChat:\n\t\treturn signalbox.BypassQueue(n.Agent)",
		}},
		Package: "internal/engine", Tests: []string{"TestChatReceiptTellsItsPosition", "TestOverflowPolicies"},
	},
	{
		Name: "anyone-frees-the-slot", Fault: "execution-queue complete",
		Text: "the end of an execution frees its slot also where another one has it by now",
		File: "internal/store/verbs/slots.go",
		Edits: []Edit{{
			"r != nil && r.slot != nil && r.slot.Fence == fence {",
			"r != nil && r.slot != nil {",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/slots", "TestConformance/rules/apply", "TestConformance/rules/lease"},
	},
	{
		Name: "nobody-follows-after-a-restart", Fault: "execution-queue stuck",
		Text: "what was in flight when the director ended is followed by nobody",
		File: "internal/execution/push/adopt.go",
		Edits: []Edit{{
			"r.startClocks()\n\td.start(r, (*run).resume)",
			"r.startClocks()",
		}},
		Package: "internal/execution/push", Tests: []string{"TestStopLeavesRowsInFlight"},
	},
	{
		Name: "slot-freed-while-it-runs", Fault: "execution-queue split",
		Text: "a task that its agent accepts gives its slot back while it runs",
		File: "next.go",
		Edits: []Edit{{
			"t.TaskID, t.StartedAt = ev.TaskID, latest(ev.Now, t.DispatchedAt)",
			"c.Slot = SlotFree\n\tt.TaskID, t.StartedAt = ev.TaskID, latest(ev.Now, t.DispatchedAt)",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "silence-never-ends", Fault: "execution-queue reclaim",
		Text: "the slot of an agent that cannot be reached is reclaimed when it answers, which it never does",
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
		Text: "a run begins when its task was submitted",
		File: "next.go",
		Edits: []Edit{{
			"t.TaskID, t.StartedAt = ev.TaskID, latest(ev.Now, t.DispatchedAt)",
			"t.TaskID, t.StartedAt = ev.TaskID, t.CreatedAt",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "failed-becomes-success", Fault: "execution-queue flicker",
		Text: "a task that has failed takes a later success",
		File: "next.go",
		Edits: []Edit{
			{"if t.State.Terminal() {", "if t.State.Terminal() && !(t.State == Failed && ev.Kind == EventFinish) {"},
			{"EventFinish: {fenced: true, from: moves{", "EventFinish: {fenced: true, from: moves{Failed: finish, "},
		},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "cancelled-is-a-success", Fault: "execution-queue cancelled",
		Text: "a run that was cut short counts as completed, because its program ended well",
		File: "internal/execution/outcome.go",
		Edits: []Edit{{
			"case s.State == \"completed\" && !abortedKinds[kind]:",
			"case s.State == \"completed\":",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentCancelledRecordedAsSuccess"},
	},
	{
		Name: "drain-looks-elsewhere", Fault: "execution-queue drain",
		Text: "whoever waits in the line for all is looked for under a name that the line had before",
		File: "internal/execution/claim.go",
		Edits: []Edit{{
			"} else if queue != signalbox.QueueWork {",
			"} else if queue != \"backlog\" {",
		}},
		Package: "internal/execution/push", Tests: []string{"TestNoTaskWaitsBesideFreeSlot"},
	},
	{
		Name: "backlog-shut-to-chats", Fault: "execution-queue refusals",
		Text: "a chat that is to wait in the backlog is refused when the lane of its agent is full",
		File: "internal/engine/submit.go",
		Edits: []Edit{{
			"case n.Mode == signalbox.ModeChat && n.Overflow != signalbox.OverflowPersist:",
			"case n.Mode == signalbox.ModeChat:",
		}},
		Package: "internal/engine", Tests: []string{"TestOverflowPolicies"},
	},
	{
		Name: "smaller-timeout-counts", Fault: "execution-queue timeouts",
		Text: "of the task's timeout and the agent's default the smaller one counts",
		File: "internal/agentd/validate.go",
		Edits: []Edit{{
			"j.timeout, j.limit = time.Duration(t.TimeoutSeconds)*time.Second, ",
			"j.timeout, j.limit = min(j.timeout, time.Duration(t.TimeoutSeconds)*time.Second), ",
		}},
		Package: "internal/agentd", Tests: []string{"TestIncidentSilentMinOfTimeouts"},
	},
	{
		Name: "stall-called-timeout", Fault: "execution-queue stall",
		Text: "a run that printed nothing for too long ends with the reason of a timeout",
		File: "internal/execution/limits.go",
		Edits: []Edit{{
			"return signalbox.ReasonStalled, message",
			"return signalbox.ReasonRunTimeout, message",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentStallLabelledTimeout"},
	},
	{
		Name: "empty-message", Fault: "execution-queue empty",
		Text: "a task ends without a word where nobody gave one",
		File: "ending.go",
		Edits: []Edit{{
			"t.State, t.Reason, t.Message = reason.End(), reason, cmp.Or(message, plain[reason])",
			"t.State, t.Reason, t.Message = reason.End(), reason, message",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "durations-below-zero", Fault: "execution-queue clock",
		Text: "a clock that goes back makes a task end before it began",
		File: "ending.go",
		Edits: []Edit{{
			"if e.After(now) {",
			"if e.After(now) && e.IsZero() {",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "edit-swallows-a-firing", Fault: "execution-queue boundary",
		Text: "an instant that is left out while a run goes on leaves no record",
		File: "internal/schedule/firing.go",
		Edits: []Edit{{
			"case signalbox.OverlapSkip:\n\t\treturn false, t.end(f, signalbox.SkippedBusy, \"\", fmt.Sprintf(\"the task before, %s, has not ended\", before))",
			"case signalbox.OverlapSkip:\n\t\tf.retryAt = now.Add(heldInterval)\n\t\treturn false, nil",
		}},
		Package: "internal/schedule", Tests: []string{"TestIncidentSilentSkipAtTheScheduleBoundary"},
	},
}
