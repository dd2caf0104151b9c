// Package testdisk gives tests disks of their own, which they can fill and
// unmount: small in-memory file systems, mounted if this user may mount.
package testdisk
