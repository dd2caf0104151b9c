package confine

// WithLandlock opens as on a kernel whose Landlock has at most this version;
// 0: no Landlock.
func WithLandlock(o Options, version int) Options {
	o.landlock = &version
	return o
}
