package workspace

import "testing"

func TestRelativeAddresses(t *testing.T) {
	for _, c := range [][3]string{
		{"https://host/owner/shop.git", "../lib.git", "https://host/owner/lib.git"},
		{"https://host/owner/shop.git/", "../../other/lib.git/", "https://host/other/lib.git"},
		{"https://host/owner/shop.git", "./lib", "https://host/owner/shop.git/lib"},
		{"git@host:owner/shop.git", "../lib.git", "git@host:owner/lib.git"},
		{"git@host:owner/shop.git", "../../lib.git", "git@host:lib.git"},
		{"/srv/shop.git", "../lib.git", "/srv/lib.git"},
		{"/srv/shop.git", "https://host/lib.git", "https://host/lib.git"},
		{"/srv/shop.git", ".../lib.git", ".../lib.git"},
	} {
		if got := relativeTo(c[0], c[1]); got != c[2] {
			t.Errorf("%s of %s is %s, not %s", c[1], c[0], got, c[2])
		}
	}
}
