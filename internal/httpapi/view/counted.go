package view

import "fmt"

// Counted returns a number with its noun: "1 task waits", "2 tasks wait".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
