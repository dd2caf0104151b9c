package conffile

import "strings"

// Suggest ends the sentence that there is no such key with the one that was
// probably meant, or with nothing.
func Suggest(key string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(key, k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	last := key[strings.LastIndex(key, ".")+1:]
	for _, k := range known {
		if best == "" && strings.HasSuffix(k, "."+last) {
			best = k // the right name in the wrong section
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// distance is the number of characters to add, drop or change. Keys far
// longer than any that exist are far from all.
func distance(a, b string) int {
	const longest = 100
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
