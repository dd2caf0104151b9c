package endpoint

import "time"

// Beating are options with which a silent answer says so that often.
func Beating(every time.Duration) Options { return Options{keepAlive: every} }
