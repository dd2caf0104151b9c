// Package e2e_test tests the real binary from outside: processes on free
// loopback ports with their own folders and homes, the real command line and
// the public client. It does not depend on the program's internals.
//
//	box_test.go      a machine of its own for each test: start, ask, clean up
//	process_test.go  a process and what it prints
//	reap_test.go     what ends the processes of a run that was killed itself
//	gate_test.go     work that runs until the test lets it end
//	journal_test.go  the event stream and the agents' own logs as evidence
//
// and for tools:
//
//	tools_rig_test.go       MCP clients, files of tools, the tool queues
//	tools_upstream_test.go  an MCP server that keeps a log of what it has under
//	                        way, and doors at which its calls wait
//
// and for command tools:
//
//	commands_rig_test.go    a director with command tools, and who lives of
//	                        their runs; the programs are in testdata/commands
//
// and for the pages:
//
//	pages_rig_test.go    one Chromium for all tests; windows and tabs, and what
//	                     their consoles say
//	pages_tab_test.go    what a person finds and does in a page
//	pages_stage_test.go  a director with agents and tools to look at
//
// and for the limits of a provider:
//
//	limits_provider_test.go  a provider that refuses a login for a while, and keeps
//	                         what it was asked
//	limits_rig_test.go       directors and agents with real CLIs that spend it, and what
//	                         is to be true of every limit
//
// The other files have the tests, by topic. SIGNALBOX_SEED=N repeats the
// random choices of the crash tests. SIGNALBOX_SOAK=1 makes them, the rush of
// twenty sessions and the kills of commands ten times as long.
package e2e_test
