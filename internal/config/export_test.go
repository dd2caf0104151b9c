package config

// Plain is the configuration without the information where it was loaded
// from.
func (c Config) Plain() Config {
	c.sources, c.read = Sources{}, nil
	return c
}
