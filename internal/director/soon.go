package director

import "net/http"

// Placeholders: whoever builds one removes it here.

func (d *Director) createToolTask(http.ResponseWriter, *http.Request) error { panic("being built") }
func (d *Director) toolTasks(http.ResponseWriter, *http.Request) error      { panic("being built") }
func (d *Director) toolTask(http.ResponseWriter, *http.Request) error       { panic("being built") }
func (d *Director) cancelToolTask(http.ResponseWriter, *http.Request) error { panic("being built") }
func (d *Director) getTaskStatus(http.ResponseWriter, *http.Request) error  { panic("being built") }
func (d *Director) doctor(http.ResponseWriter, *http.Request) error         { panic("being built") }
