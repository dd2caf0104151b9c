package execution

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Decided reports whether err says that somebody else decided about an execution
// before: its own word counts no more.
func Decided(err error) bool {
	switch signalbox.CodeOf(err) {
	case signalbox.CodeStaleFence, signalbox.CodeAlreadyEnded, signalbox.CodeNotFound, signalbox.CodeConflict:
		return true
	}
	return false
}

// Undecided is err, or nil where somebody else decided before: what was wanted of
// them has been done, or no longer matters.
func UnlessDecided(err error) error {
	if Decided(err) {
		return nil
	}
	return err
}

// Settled says what became of a change.
type SettleResult int

// What becomes of a change.
const (
	Stored      SettleResult = iota
	Void                     // somebody else decided about this execution: its word counts no more
	Interrupted              // given up before it could be stored
)

// The pauses of Settle grow from settleFirst to settleLast.
const (
	settleFirst = 50 * time.Millisecond
	settleLast  = 5 * time.Second
)

// Settle makes a change that must not get lost: while the store cannot take it, it
// is tried again. failed is told of each failure and reports whether to go on
// after a pause.
func Settle(change func() error, failed func(err error, pause time.Duration) (again bool)) (SettleResult, error) {
	for pause := settleFirst; ; pause = min(2*pause, settleLast) {
		err := change()
		switch {
		case err == nil:
			return Stored, nil
		case Decided(err):
			return Void, err
		case !failed(err, pause):
			return Interrupted, err
		}
	}
}
