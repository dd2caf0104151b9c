package config

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// permBits are the permission bits to check: none. A file's access control list
// decides who may read or write it, and is not checked; in the user's profile
// folder others may do neither.
const permBits fs.FileMode = 0

// ours reports whether a file belongs to the user of this process, the
// administrators or the system. It returns false if the owner cannot be read.
func ours(path string, _ fs.FileInfo) bool {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return false
	}
	owner, _, err := sd.Owner()
	if err != nil || owner == nil {
		return false
	}
	if owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) || owner.IsWellKnown(windows.WinLocalSystemSid) {
		return true
	}
	me, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && owner.Equals(me.User.Sid)
}
