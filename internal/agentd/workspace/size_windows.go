package workspace

import "io/fs"

// onDisk is what a file takes on the disk, in bytes, about.
func onDisk(st fs.FileInfo) int64 { return st.Size() }
