package director

import "net/http"

func (d *Director) live(http.ResponseWriter, *http.Request) error   { return errBeingBuilt }
func (d *Director) search(http.ResponseWriter, *http.Request) error { return errBeingBuilt }
func (d *Director) bulk(http.ResponseWriter, *http.Request) error   { return errBeingBuilt }
