package mutants

// The incidents of execution-queue about access.
var accessMutants = []Mutant{
	{
		Name: "answer-without-an-id", Fault: "execution-queue id",
		Text: "the answer to a call names its task only at the end",
		File: "internal/httpapi/chat.go",
		Edits: []Edit{{
			"w.Header().Set(queueIDHeader, t.ID)\n",
			"",
		}},
		Package: "internal/httpapi", Tests: []string{"TestIncidentClientGivesUpWithNoId"},
	},
	{
		Name: "key-makes-a-second-task", Fault: "execution-queue id",
		Text: "a repeated idempotency key makes another task",
		File: "internal/store/verbs/submit.go",
		Edits: []Edit{{
			"if known != nil {",
			"if false {",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/idempotency"},
	},
	{
		Name: "reader-waits-for-a-grandchild", Fault: "execution-queue grandchild",
		Text: "a run ends only when every process that holds its output has closed it",
		File: "internal/command/run.go",
		Edits: []Edit{{
			"case <-u.child.Drained():\n\tcase <-time.After(SettleTime):\n",
			"case <-u.child.Drained():\n",
		}},
		Package: "internal/command", Tests: []string{"TestIncidentGrandchildHoldsStdout"}, Hangs: true,
	},
	{
		Name: "anyone-clears-any-queue", Fault: "execution-queue clear",
		Text: "clear and release are allowed without the right to them",
		File: "internal/httpapi/access/gate.go",
		Edits: []Edit{{
			"if who.Has(signalbox.Scope(route.Scope)) || ",
			"if signalbox.Scope(route.Scope) == signalbox.ScopeRelease || who.Has(signalbox.Scope(route.Scope)) || ",
		}},
		Package: "internal/httpapi/access", Tests: []string{"TestIncidentAnyUserCouldClearAnyQueue"},
	},
	{
		Name: "forged-agent-believed", Fault: "execution-queue forged",
		Text: "a caller that is not an agent may claim to be one",
		File: "internal/httpapi/access/caller.go",
		Edits: []Edit{{
			"says != \"\" && (!isAgent || who.ID != says) {",
			"says != \"\" && isAgent && who.ID != says {",
		}},
		Package: "internal/httpapi/access", Tests: []string{"TestIncidentForgedSourceAgentCertified"},
	},
	{
		Name: "calls-without-end", Fault: "execution-queue depth",
		Text: "the depth of calls between agents is not counted",
		File: "internal/engine/call.go",
		Edits: []Edit{{
			"if c.depth > signalbox.MaxCallDepth {",
			"if c.depth > 1000*signalbox.MaxCallDepth {",
		}},
		Package: "internal/engine", Tests: []string{"TestIncidentNoCallDepthGuard"},
	},
	{
		Name: "task-ends-with-its-connection", Fault: "execution-queue connection",
		Text: "a caller that disconnects cancels its task, although it did not ask for that",
		File: "internal/httpapi/chat_wait.go",
		Edits: []Edit{{
			"cancels := c.cancelIfGone && last",
			"cancels := last",
		}},
		Package: "internal/httpapi", Tests: []string{"TestChatWhoseCallerGoesAway"},
	},
}
