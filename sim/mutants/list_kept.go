package mutants

// Invalid or hostile input that work-queue accepted.
var keptMutants = []Mutant{
	{
		Name: "agent-asks-for-no-token", Fault: "work-queue auth",
		Text: "an agent with a token serves requests without one",
		File: "internal/agentd/guard.go",
		Edits: []Edit{{
			"if d.cfg.Token != \"\" && !httpguard.SameToken(",
			"if d.cfg.Token != \"\" && req.Header.Get(\"Authorization\") != \"\" && !httpguard.SameToken(",
		}},
		Package: "internal/agentd", Tests: []string{"TestTokenGuardsEveryPath"},
	},
	{
		Name: "project-outside-its-roots", Fault: "work-queue paths",
		Text: "a project may name any folder on the machine",
		File: "internal/agentd/validate.go",
		Edits: []Edit{{
			"if err == nil && within(d.cfg.ProjectRoots, real) {",
			"if err == nil && (real != \"\" || within(d.cfg.ProjectRoots, real)) {",
		}},
		Package: "internal/agentd", Tests: []string{"TestProjectCannotEscapeRoots"},
	},
	{
		Name: "link-outside-of-the-folder", Fault: "work-queue paths",
		Text: "the working folder of a command may leave its root through a symlink",
		File: "internal/command/place.go",
		Edits: []Edit{{
			"if !inside(realRoot, realDir) {",
			"if !inside(realRoot, realDir) && realDir == \"\" {",
		}},
		Package: "internal/command", Tests: []string{"TestWorkingFolderOfTheInput", "TestWorkingFolderThatChangesBeforeTheRun"},
	},
	{
		Name: "metadata-address-asked", Fault: "work-queue ssrf",
		Text: "an agent may have a link-local address, where clouds serve credentials",
		File: "internal/agentaddr/agentaddr.go",
		Edits: []Edit{{
			"case to.IsLinkLocalUnicast() || isMetadata(to):",
			"case isMetadata(to):",
		}},
		Package: "internal/agentaddr", Tests: []string{"TestCheck", "TestControlStopsTheDial"},
	},
	{
		Name: "name-trusted-at-the-dial", Fault: "work-queue ssrf",
		Text: "the address of a host name is not checked again when it is dialled",
		File: "internal/agentaddr/agentaddr.go",
		Edits: []Edit{{
			"return Check(to.Addr(), trusted)",
			"_ = to\n\t\treturn nil",
		}},
		Package: "internal/agentaddr", Tests: []string{"TestControlStopsTheDial"},
	},
	{
		Name: "status-without-a-task", Fault: "work-queue status",
		Text: "the status of an idle agent crashes the process",
		File: "internal/execution/push/lane.go",
		Edits: []Edit{{
			"if len(s.CurrentTasks) == 0 && s.CurrentTask != nil {",
			"if len(s.CurrentTasks) == 0 {",
		}},
		Package: "internal/execution/push", Tests: []string{"TestQueueSubmitAndDispatch"},
	},
	{
		Name: "reload-undone", Fault: "work-queue reload",
		Text: "a change of a schedule that conflicts with another is dropped, and reported as made",
		File: "internal/schedule/edit.go",
		Edits: []Edit{{
			"if errors.Is(err, ErrStale) {\n\t\t\tcontinue\n\t\t}",
			"if errors.Is(err, ErrStale) {\n\t\t\treturn before, nil\n\t\t}",
		}},
		Package: "internal/schedule", Tests: []string{"TestEditIsRetriedAfterConcurrentChange"},
	},
	{
		Name: "folder-of-the-user", Fault: "work-queue folder",
		Text: "the configured home folder is ignored: everything goes to the user's",
		File: "internal/config/load.go",
		Edits: []Edit{{
			"if home, ok := env(HomeEnv); ok && home != \"\" {",
			"if home, ok := env(HomeEnv); ok && home == \"\" {",
		}},
		Package: "internal/config", Tests: []string{"TestDefaults", "TestWhichFile", "TestWithoutAHome", "TestPrecedence"},
	},
}
