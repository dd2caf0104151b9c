package config

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// permBits are the permission bits that say something here: none. Who may read or
// write a file stands in its access control list, which is not looked at; in the
// folder of a user's profile others may do neither.
const permBits fs.FileMode = 0

// ours reports whether a file belongs to the user of this process, to the
// administrators or to the system. A file whose owner cannot be read is not ours.
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
