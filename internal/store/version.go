package store

import (
	"regexp"
	"strconv"
)

var release = regexp.MustCompile(`^v?(\d+)\.(\d+)\.\d+$`)

// SameMinor reports whether two versions may run side by side over one store:
// those of one minor. What is no release ("dev", a commit) is compared with
// nothing: who builds it knows what it is.
func SameMinor(a, b string) bool {
	x, y := release.FindStringSubmatch(a), release.FindStringSubmatch(b)
	return x == nil || y == nil || (number(x[1]) == number(y[1]) && number(x[2]) == number(y[2]))
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1 // too great for an int: equal only to another such
	}
	return n
}
