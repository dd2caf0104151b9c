package page

// These remarks describe effects of the design: they apply to every run and contain no
// measured values. They are printed separately from the figures. A figure that misses
// its target for an unknown reason has no remark.

// Remarks that several figures share.
const (
	oneOrder = "all batches over a store have one order, so the server executes them one after another, each with a fixed cost that occurs more often with more directors; " +
		"more directors bring availability, not speed"
	luaBatch  = "Asynq's submit is one small script per task; ours also stores a key, a limit, a place in line and a journal entry in the same step"
	aDirector = "a director includes an API, a dashboard, a gateway, a scheduler and a store; the smallest program with a peer has one worker"
	oneWait   = "a channel records neither who waits nor since when; that takes two clock readings"
	manyParts = "a single caller waits for one sync and the path through the writer; a peer's single statement writes one row and no journal"
)

// remarks explain, by figure, missed targets that follow from the design.
var remarks = map[string]string{
	"postgres/cycle-2000":                  "each of our steps is durable before the next; River inserts and ends a thousand at a time",
	"postgres/directors-2000":              oneOrder,
	"postgres/directors-256":               oneOrder,
	"postgres/fleet":                       "each director reads what all the others write, and its batches are a quarter as large; more directors bring availability, not speed",
	"redis/directors-256":                  oneOrder,
	"toolqueue/permit":                     "some nanoseconds for the hooks and for a slot that records its holder",
	"postgres/submit-64":                   "for single inserts, River is fastest with more connections",
	"redis/submit-64":                      luaBatch,
	"gateway/mcp/p50":                      "one more HTTP request: it is read and forwarded, and its answer is read and sent back",
	"gateway/mcp-2025/p50":                 "one more HTTP request: it is read and forwarded, and its answer is read and sent back",
	"commands/run":                         "a run includes pipes, both outputs and the proof that none of its processes is left",
	"commands/rlimit":                      "without control groups the proof that no process of a run is left is a scan of all processes of the machine: ten runs that end concurrently share one",
	"commands/rlimit-limits":               "as without limits",
	"commands/rlimit-10":                   "ten runs share the scan of all processes",
	"commands/rlimit-limits-10":            "as without limits",
	"sqlite/lanes-own":                     "claims from 10,000 lines use index entries that are not adjacent, so about two more pages are written for each execution",
	"sqlite/lanes-one":                     "claims for 10,000 agents write slot rows on many pages; for one agent they are adjacent",
	"sqlite/submit-64":                     "with two cores the processor is the limit, not the disk",
	"sqlite/cycle-64":                      "four durable steps, each in its own batch with the other waiting steps",
	"sqlite/wait-1m-64":                    "the file with a million tasks has pages that are not in the cache",
	"toolqueue/permit-background":          "some more nanoseconds for the hooks and for a slot that records its holder",
	"toolqueue/permit-64-yield":            "the hooks and the clock, in turns that really wait",
	"toolqueue/permit-64-yield-background": "the hooks and the clock, in turns that really wait",
}

// behind explains, by figure and peer, why ours is slower than a peer without a target.
var behind = map[string]string{
	"sqlite/submit-1 backlite":                                  manyParts,
	"sqlite/submit-1 River (SQLite), defaults":                  manyParts,
	"sqlite/pickup/p50 backlite":                                manyParts,
	"sqlite/pickup/p99 backlite":                                manyParts,
	"sqlite/tomorrow backlite":                                  manyParts,
	"sqlite/tomorrow River (SQLite), best":                      manyParts,
	"sqlite/tomorrow/bytes backlite":                            "our row also has an index entry for its line, one for its key, and a journal entry",
	"sqlite/tomorrow/bytes River (SQLite), best":                "our row also has an index entry for its line, one for its key, and a journal entry",
	"postgres-deep/tomorrow River, best":                        "our submit is a dozen statements in one round trip; River's is one insert",
	"postgres/submit-1 River, defaults":                         "our submit is a dozen statements in one round trip; River's is one insert",
	"postgres/cycle-256 River, best":                            "256 callers that wait for each step make smaller batches than 2,000 workers and inserts of a thousand",
	"postgres/pickup/p50 River, defaults":                       "our submit is a dozen statements in one round trip; River's is one insert",
	"redis/submit-1 Asynq, defaults":                            luaBatch,
	"footprint/start/ready River and one worker":                aDirector,
	"footprint/start/ready Asynq and one worker":                aDirector,
	"footprint/start/ready backlite and one worker":             aDirector,
	"footprint/start/memory River and one worker":               aDirector,
	"footprint/start/memory Asynq and one worker":               aDirector,
	"footprint/start/memory backlite and one worker":            aDirector,
	"footprint/start/size River and one worker":                 aDirector,
	"footprint/start/size Asynq and one worker":                 aDirector,
	"footprint/start/size backlite and one worker":              aDirector,
	"idle/agents/cpu a director with nothing":                   "it handles 33 heartbeats a second",
	"idle/agents/cpu River and one worker":                      "an idle worker receives nothing; here 33 agents a second send a heartbeat",
	"idle/agents/cpu Asynq and one worker":                      "an idle worker receives nothing; here 33 agents a second send a heartbeat",
	"idle/agents/cpu backlite and one worker":                   "an idle worker receives nothing; here 33 agents a second send a heartbeat",
	"idle/schedules/cpu a director with nothing":                "once a minute all schedules are read, to see changes by other directors",
	"toolqueue/rate Signalbox, no rate":                         "a token in addition to the slot",
	"toolqueue/rate-burst-4 Signalbox, no rate":                 "with a burst below 8 each start reads the clock, under the lock",
	"toolqueue/permit bare channel":                             oneWait,
	"toolqueue/permit-background bare channel":                  oneWait,
	"toolqueue/permit-64 bare channel":                          oneWait,
	"toolqueue/permit-64-background bare channel":               oneWait,
	"toolqueue/permit-64-yield bare channel":                    oneWait,
	"toolqueue/permit-64-yield-background bare channel":         oneWait,
	"toolqueue/permit-64-yield channel with context":            oneWait,
	"toolqueue/permit-64-yield-background channel with context": oneWait,
	"commands/path bare fork, exec, wait, 10 concurrent":        "two durable steps before the start and one after it",
	"commands/path-http bare fork, exec, wait, 10 concurrent":   "two durable steps before the start and one after it, and HTTP",
	"dashboard/load/frame a plain table":                        "a screen frame takes 16.7 ms, and both draw every frame",
}
