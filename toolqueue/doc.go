// Package toolqueue bounds how many calls of a tool run concurrently over all sessions of a
// process: named queues, each with a capacity, first come, first served.
//
// A queue has slots. Acquire takes one, or waits for one, and Release passes it to the first
// waiter. A caller that gives up, because its context ends or its maximum wait is over, leaves
// the queue at once and never touches a slot.
//
//	queues := toolqueue.New(toolqueue.Hooks{})
//	err := queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1}})
//	permit, err := queues.Acquire(ctx, "browser", toolqueue.Who{Tool: "browser__click", Session: "s1"})
//	defer permit.Release()
//
// TryAcquire takes a slot only if one is free; AcquireWithin bounds the wait. New returns Queues
// without any queue, not even Default: Configure adds them.
//
// Update changes the capacity of a queue while it is in use: additional slots go to the first
// waiters at once, removed slots drain.
//
// Config.Rate limits how often calls start: a start takes a slot and a token at once. A call that
// lacks one waits in order, and Waiting.Held says until when. In every period of Rate.Per at most
// Rate.N + Rate.Burst calls start, by the time at which they got their slot. Each call of a
// session lease counts, and so does a call that gives up after it got its slot.
//
// With Config.PerKey all limits apply to each key of the calls (Who.Key), such as a caller or an
// account, separately, and no call waits for a call of another key. At most MaxKeys are kept; a
// key is forgotten when it has no calls, a full bucket and no closing.
//
// CloseUntil stops a queue from starting calls until a time, for example after an upstream
// answered 429. The queue reopens by itself.
//
// A session can hold a slot for longer than one call: see Lease.
//
// A queue can be shared by several processes: see Queues.Share. A common backend then stores its
// holders and waiters, one ticket per call, with the tokens of its rate and its closings. A process
// that loses the backend is notified before another process can get its slots.
//
// # Cost
//
// While no call waits, the first eight slots of a local queue are taken and released without a
// lock and without reading a clock, in some 20 ns, with or without a rate. Further slots are taken
// under the lock, in some 130 ns. For the fast path an eighth of a rate's burst is lent at a time.
// The queue does not know when each lent token was taken, so after an idle period a bucket may lack
// up to an eighth. With a burst below eight nothing is lent: the bucket is exact, but a start reads
// the clock under the lock and takes two to three times as long.
//
// While calls wait, every slot is passed to the first waiter under the lock. The cost does not
// depend on the number of waiters. Nothing of this allocates in the steady state, except the timer
// of a bounded wait (AcquireWithin, Config.MaxWait) and what a shared queue sends and stores.
package toolqueue
