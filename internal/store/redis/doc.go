// Package redis keeps a store in Redis 7 or newer, or Valkey: a verbs.Backend.
//
// All keys begin with {prefix}: and so are on one node of a cluster. In this list, a text that ends with a
// colon is followed by a name:
//
//	head           moment; rest: the other counters; id of the store; cut
//	tasks          id → Seq, packed task           ids         ids, sorted
//	requests       Seq → packed request            sealed      Seq → environment
//	results        Seq → packed result             recent      the newest ids, those of a batch together
//	keys           idempotency key → id            named       session → number of tasks
//	all            pending tasks in order, those whose order is that of their age
//	shifted        … the others in order           created     … the others by their age
//	ready:queue    … of a queue, those that are ready
//	held:queue     … of a queue, those that are not
//	timed          … that wait for a time          bounded     … that wait until a time
//	flying         tasks in flight by fence        turns:session    what runs and waits of it
//	ended          ended tasks                     runs:agent  run times of completed ones
//	children:id    tasks that a task called        queues, limits, states   counts
//	slots          agent, slot → row               slots.name  agent, slot, sorted
//	docs:kind      id → row                        docs.id:kind, docs.sort:kind  sorted
//	journal        stream: a record for each batch
//	logs           what the newest batches changed, for those who follow them
//	writer:name    number of its last batch        turn        whose turn it is
//
// A sorted set is an index: a member consists of the numbers that it is sorted by, eight bytes each, and the
// id (key.go). Reads are composed of a few questions (lua/read.lua), writes of plain commands
// (lua/commit.lua): no rule of the queue is in a script.
package redis
