package director

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
)

func soon(http.ResponseWriter, *http.Request) error {
	return signalbox.Errorf(signalbox.CodeInternal, "being built")
}

// soonHandlers stand in for what is being built.
func (d *Director) soonHandlers() map[string]handler {
	return map[string]handler{"openTerminal": soon, "terminal": soon}
}
