package proc

// KeepPrivate is of Linux.
func KeepPrivate() {}
