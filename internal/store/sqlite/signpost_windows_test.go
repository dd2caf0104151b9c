package sqlite

// signpost does nothing: nobody traces the calls of the system here.
func signpost(int) {}
