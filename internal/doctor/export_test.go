package doctor

// Internals for tests.
var (
	FilesCheck = filesCheck
	Clock      = clock
	Inodes     = inodes
	Offset     = offset
)

// Bounds checks one limit of a control group.
func Bounds(used, most uint64) string {
	return bounds([]bound{{name: "memory.max", unit: "bytes", used: used, most: most}})[0].State
}
