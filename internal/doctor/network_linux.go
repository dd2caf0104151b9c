package doctor

import "golang.org/x/sys/unix"

// networks are the file systems of other machines, by what statfs calls them
// (linux/magic.h).
var networks = map[uint32]string{
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x517b: "smb", 0x564c: "ncp", 0x5346414f: "afs", 0x6b414653: "afs",
	0x00c36400: "ceph", 0x01021997: "9p", 0x73757245: "coda", 0x0bd00bd0: "lustre", 0x7461636f: "ocfs2", 0x01161970: "gfs2", 0x47504653: "gpfs",
}

// network names the file system where it is another machine's; "" elsewhere.
func network(s *unix.Statfs_t) string { return networks[uint32(s.Type)] }
