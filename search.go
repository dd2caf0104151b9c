package signalbox

import "time"

// Query chooses tasks: the one grammar of the pages, the command line and the
// API, such as
//
//	agent:coder state:failed since:2h "billing"
//
// Words stand for AND; a word may be key:value, and several values of a key,
// with commas or in several words, stand for OR. A word or a "text in quotes"
// without a key is a part of the prompt's first line, whatever its letters'
// case. A minus before a word or key stands for NOT. The keys are agent,
// state, reason, queue, source, job, session, mode, tool, by, id, since, until
// and older.
type Query struct{}

// ParseQuery reads a query of at most 1,000 bytes. Errors are CodeValidation
// of the field q and name the word that is wrong.
func ParseQuery(text string, now time.Time) (Query, error) { panic("being built") }

// String is the query in its canonical form, which parses to the same.
func (q *Query) String() string { panic("being built") }

// Takes reports whether the query chooses a task.
func (q *Query) Takes(t *Task) bool { panic("being built") }
