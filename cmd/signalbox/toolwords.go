package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// someOf is a list that fits a line.
func someOf(words []string) string {
	const most = 8
	if len(words) > most {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
	}
	return strings.Join(words, ", ")
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
