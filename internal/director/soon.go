package director

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
)

// soon answers for routes that are being built; nothing of it stays.
func (d *Director) soon(http.ResponseWriter, *http.Request) error {
	return signalbox.Errorf(signalbox.CodeUnsupported, "this is being built")
}
