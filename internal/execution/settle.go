package execution

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Decided reports whether err means that an earlier change decided about an execution: this
// one no longer counts.
func Decided(err error) bool {
	switch signalbox.CodeOf(err) {
	case signalbox.CodeStaleFence, signalbox.CodeAlreadyEnded, signalbox.CodeNotFound, signalbox.CodeConflict:
		return true
	}
	return false
}

// UnlessDecided returns err, or nil if Decided: someone else has already done it, or it no
// longer matters.
func UnlessDecided(err error) error {
	if Decided(err) {
		return nil
	}
	return err
}

// SettleResult says what became of a change.
type SettleResult int

// What becomes of a change.
const (
	// Results of Settle.
	Stored      SettleResult = iota
	Void                     // someone else decided about this execution first
	Interrupted              // given up before it could be stored
)

// The pauses of Settle grow from settleFirst to settleLast.
const (
	// The retry delay of Settle grows from settleFirst to settleLast.
	settleFirst = 50 * time.Millisecond
	settleLast  = 5 * time.Second
)

// Settle retries a change that must not get lost until the store accepts it. failed is
// called after each failure; it waits for pause and reports whether to retry.
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
