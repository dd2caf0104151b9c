package director

import "net/http"

func (d *Director) search(http.ResponseWriter, *http.Request) error { return errBeingBuilt }
func (d *Director) bulk(http.ResponseWriter, *http.Request) error   { return errBeingBuilt }
