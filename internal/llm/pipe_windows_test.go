package llm_test

import "os"

// makePipe makes a folder: named pipes are no files here.
func makePipe(path string) error { return os.Mkdir(path, 0o700) }
