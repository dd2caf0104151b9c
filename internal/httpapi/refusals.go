package httpapi

import (
	"github.com/signalbox-ai/signalbox"
)

// refused counts a submit that did not reach the engine.
func refused(m Metrics, err error) error {
	m.Refused(signalbox.CodeOf(err))
	return err
}
