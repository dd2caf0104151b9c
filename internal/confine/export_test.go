package confine

// WithLandlock opens as on a kernel whose Landlock has no higher version; with
// 0 it has none.
func WithLandlock(o Options, version int) Options {
	o.landlock = &version
	return o
}
