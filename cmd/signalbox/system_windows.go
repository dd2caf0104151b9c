package main

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// homeVariable names the folder of the user.
const homeVariable = "USERPROFILE"

// addressInUse says that another listens at an address.
const addressInUse = windows.WSAEADDRINUSE

// userName tells this user from others, in the name of a file: the temporary folder
// is the user's own here.
func userName() string { return "own" }

// mine is not looked at: the temporary folder is the user's own here.
func mine(fs.FileInfo) bool { return true }

// openToOthers is not looked at: permission bits say nothing here.
func openToOthers(fs.FileInfo) bool { return false }

func freeBytes(dir string) (int64, bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(free, 1<<62)), true
}
