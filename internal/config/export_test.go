package config

// Plain is a configuration without where it was loaded from.
func (c Config) Plain() Config {
	c.sources, c.read = Sources{}, nil
	return c
}
