package confine

// WithoutUnified opens as on a machine that has control groups of version 1
// only.
func WithoutUnified(o Options) Options {
	o.noUnified = true
	return o
}

// WithoutLandlock opens as on a kernel that has it not.
func WithoutLandlock(o Options) Options {
	o.noLandlock = true
	return o
}
