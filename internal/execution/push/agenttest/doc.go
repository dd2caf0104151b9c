// Package agenttest is an agent for tests: it speaks the agent HTTP API on the loopback interface, runs
// nothing, and is controlled by the test.
//
// By default it behaves well, and its executions end when the test calls Finish. Script answers single
// requests differently: busy, garbage, a reset before or after it took the task, a hang. Down, Silence and
// Restart make it unreachable, silent, or restarted with or without its memory.
//
// It logs every request and every execution. Await waits for a state of that log, so no test has to sleep.
// Overlaps lists executions that shared a slot.
package agenttest
