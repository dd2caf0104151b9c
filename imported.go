package signalbox

// The queues that tasks are imported from under new ids.
const (
	ImportWorkQueue      = "work-queue"
	ImportExecutionQueue = "execution-queue"
	ImportAsyncTaskQueue = "async-task-queue"
)

// Imports lists them, in the order in which an old id is sought.
func Imports() []string { return []string{ImportWorkQueue, ImportExecutionQueue, ImportAsyncTaskQueue} }

// ImportKey is the idempotency key of a task that had the id old in a queue of
// that kind: an import that is done again stores nothing twice, and the task is
// found by its old id.
func ImportKey(kind, old string) string { return ImportPrefix + kind + " " + old }

// ImportPrefix begins the idempotency keys of imported tasks.
const ImportPrefix = "import "
