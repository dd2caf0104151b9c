package proc

import "os"

// Who has a file open is not told here.
func inode(*os.File) uint64 { return 0 }

func writers([]uint64, Ident) []entry { return nil }
