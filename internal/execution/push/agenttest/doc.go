// Package agenttest is an agent for tests: it speaks the agent HTTP API over
// the loopback interface, runs nothing, and does what a test tells it.
//
// By itself it is a well-behaved agent whose executions end when the test
// says so. Script makes it answer single requests otherwise: busy, garbage, a
// reset before or after it took the task, a hang. Down, Silence and Restart
// make it vanish, stop answering, and come back with or without its memory.
//
// Everything it is asked and everything it runs is logged. Await waits for
// what the log shows, so that no test has to sleep; Overlaps says whether two
// executions ever shared a slot.
package agenttest
