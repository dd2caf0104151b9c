//go:build !linux

package doctor

// groupOf: there are no control groups here.
func groupOf() []bound { return nil }
