package endpoint

import "time"

// Beating returns options that send a keep-alive at this interval.
func Beating(every time.Duration) Options { return Options{keepAlive: every} }
