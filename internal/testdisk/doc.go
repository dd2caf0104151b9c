// Package testdisk gives tests disks of their own, which they can fill and cut
// off: small file systems in memory, mounted where this user may mount any.
package testdisk
