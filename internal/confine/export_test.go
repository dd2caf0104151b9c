package confine

// WithoutUnified opens as on a machine that has control groups of version 1
// only.
func WithoutUnified(o Options) Options {
	o.noUnified = true
	return o
}

// WithLandlock opens as on a kernel whose Landlock has no higher version; with
// 0 it has none.
func WithLandlock(o Options, version int) Options {
	o.landlock = &version
	return o
}
