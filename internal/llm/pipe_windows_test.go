package llm_test

import "os"

// makePipe creates a folder: on Windows, named pipes are not files.
func makePipe(path string) error { return os.Mkdir(path, 0o700) }
