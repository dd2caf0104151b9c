package doctor

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// permBits are the permission bits that are meaningful here: none.
const permBits fs.FileMode = 0

// closedToOthers is the text for permissions that are not checked here.
const closedToOthers = "who else can read it is not checked on Windows: keep it in the folder of your profile"

// groupOf: there are no control groups here.
func groupOf() []bound { return nil }

// mostFiles: there is no limit but memory.
func mostFiles() (uint64, error) { return 1 << 62, nil }

// mayWrite checks that the folder exists: only a write shows the rest.
func mayWrite(dir string) error {
	_, err := os.Stat(dir)
	return err
}

func volumeOf(dir string) (v volume, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return v, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return v, err
	}
	v.free = int64(min(free, 1<<62))
	root := make([]uint16, windows.MAX_LONG_PATH)
	if windows.GetVolumePathName(name, &root[0], uint32(len(root))) == nil && windows.GetDriveType(&root[0]) == windows.DRIVE_REMOTE {
		v.network = "a network drive"
	}
	return v, nil
}
