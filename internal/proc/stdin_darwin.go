package proc

import "os"

func namelessFile() (*os.File, error) { return tempFile() }
