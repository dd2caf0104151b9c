package workspace

import "io/fs"

// onDisk is roughly the disk usage of a file, in bytes.
func onDisk(st fs.FileInfo) int64 { return st.Size() }
