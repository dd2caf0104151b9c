package page

// What stands here is of the design: it is true of every run, and names no figure
// of one. It is printed apart from the figures. A figure that misses its target for
// a reason that is not known has none.

// What several figures have in common.
const (
	oneOrder = "all batches over a store have one order, so each is a step of the server after another, with a fixed cost that more directors pay more often; " +
		"directors bring safety, not speed"
	luaBatch  = "Asynq's submit is one small script a task, ours keeps a key, a limit, a place in line and a journal entry in the same step"
	aDirector = "a director has an API, pages, a gateway, a scheduler and a store in it, the smallest program of a peer has one worker"
	oneWait   = "a call of a channel knows neither who waits nor since when; that takes two readings of the clock"
	manyParts = "what a caller alone waits for is one sync and the way through the writer; a peer's one statement writes one row and no journal"
)

// remarks say what of the design makes a figure what it is, where it misses its
// target.
var remarks = map[string]string{
	"postgres/cycle-2000":                  "each step of ours is durable before the next, River inserts and ends a thousand at a time",
	"postgres/directors-2000":              oneOrder,
	"postgres/directors-256":               oneOrder,
	"postgres/fleet":                       "each director reads what all the others write, and its batches are a quarter as large; directors bring safety, not speed",
	"redis/directors-256":                  oneOrder,
	"toolqueue/permit":                     "some nanoseconds for the hooks and a place that knows its holder",
	"postgres/submit-64":                   "River's own best for single inserts is more connections",
	"redis/submit-64":                      luaBatch,
	"gateway/mcp/p50":                      "one request more over HTTP: to be read, sent on, and its answer read and sent back",
	"gateway/mcp-2025/p50":                 "one request more over HTTP: to be read, sent on, and its answer read and sent back",
	"commands/run":                         "a run is pipes, both outputs and the proof that nothing lives",
	"commands/rlimit":                      "without control groups the proof that nothing of a run lives is a look at all processes of the machine: ten that end side by side share one",
	"commands/rlimit-limits":               "as without limits",
	"commands/rlimit-10":                   "the look at all processes is shared by ten",
	"commands/rlimit-limits-10":            "as without limits",
	"sqlite/lanes-own":                     "claims of 10,000 lines take entries that lie apart in the index, about two pages more are written for each execution",
	"sqlite/lanes-one":                     "claims for 10,000 agents write 10,000 rows of slots, for one agent they lie side by side",
	"sqlite/submit-64":                     "with two cores the processor limits it, not the disk",
	"sqlite/cycle-64":                      "four durable steps, each a batch of its own with what else waits",
	"sqlite/wait-1m-64":                    "the file of a million has pages that are not in the cache",
	"toolqueue/permit-background":          "some nanoseconds more, for the hooks and a place that knows its holder",
	"toolqueue/permit-64-yield":            "in turns that really wait, the hooks and the clock",
	"toolqueue/permit-64-yield-background": "in turns that really wait, the hooks and the clock",
}

// behind says why ours is slower than a peer where no target asks for more, by
// the figure and the peer.
var behind = map[string]string{
	"sqlite/submit-1 backlite":                                  manyParts,
	"sqlite/submit-1 River (SQLite), defaults":                  manyParts,
	"sqlite/pickup/p50 backlite":                                manyParts,
	"sqlite/pickup/p99 backlite":                                manyParts,
	"sqlite/tomorrow backlite":                                  manyParts,
	"sqlite/tomorrow River (SQLite), best":                      manyParts,
	"sqlite/tomorrow/bytes backlite":                            "a row of ours has an index entry for its line, one for its key and a journal entry beside it",
	"sqlite/tomorrow/bytes River (SQLite), best":                "a row of ours has an index entry for its line, one for its key and a journal entry beside it",
	"postgres-deep/tomorrow River, best":                        "a submit of ours is a dozen statements in one exchange, River's is one insert",
	"postgres/submit-1 River, defaults":                         "a submit of ours is a dozen statements in one exchange, River's is one insert",
	"postgres/cycle-256 River, best":                            "256 callers that each wait for each step fill a batch less than 2,000 workers and inserts of a thousand",
	"postgres/pickup/p50 River, defaults":                       "a submit of ours is a dozen statements in one exchange, River's is one insert",
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
	"idle/agents/cpu a director with nothing":                   "33 heartbeats a second are what it does",
	"idle/agents/cpu River and one worker":                      "a worker with nothing to do hears of nobody; here 33 agents a second say that they live",
	"idle/agents/cpu Asynq and one worker":                      "a worker with nothing to do hears of nobody; here 33 agents a second say that they live",
	"idle/agents/cpu backlite and one worker":                   "a worker with nothing to do hears of nobody; here 33 agents a second say that they live",
	"idle/schedules/cpu a director with nothing":                "once a minute all schedules are read, to see what other directors changed",
	"toolqueue/rate Signalbox, no rate":                         "a token besides the place",
	"toolqueue/rate-burst-4 Signalbox, no rate":                 "with a burst below 8 each start reads the clock, under the lock",
	"toolqueue/permit bare channel":                             oneWait,
	"toolqueue/permit-background bare channel":                  oneWait,
	"toolqueue/permit-64 bare channel":                          oneWait,
	"toolqueue/permit-64-background bare channel":               oneWait,
	"toolqueue/permit-64-yield bare channel":                    oneWait,
	"toolqueue/permit-64-yield-background bare channel":         oneWait,
	"toolqueue/permit-64-yield channel with context":            oneWait,
	"toolqueue/permit-64-yield-background channel with context": oneWait,
	"commands/path bare fork, exec, wait, 10 side by side":      "two durable steps before the start and one after it",
	"commands/path-http bare fork, exec, wait, 10 side by side": "two durable steps before the start and one after it, and HTTP",
	"dashboard/load/frame a plain table":                        "a frame of the screen lasts 16.7 ms, and both draw each",
}
