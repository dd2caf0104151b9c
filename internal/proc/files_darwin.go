package proc

import "os"

func namelessFile() (*os.File, error) { return tempFile() }

func pipeOut() (r, w *os.File, err error) { return os.Pipe() }
