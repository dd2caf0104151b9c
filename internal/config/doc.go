// Package config reads the settings: the configuration file, the environment
// and the flags, in order of increasing precedence. The result is one
// [Config] with typed fields, validated as far as that is possible without
// access to the system.
//
// The file is ./signalbox.yaml, else config.yaml in the home folder of
// Signalbox (see [Home]), unless a flag names one. It is decoded strictly:
// unknown keys and values of another type are errors. Values may contain
// ${NAME}, which stands for an environment variable; $${ stands for ${.
//
// [Load] reports all mistakes at once, not only the first: it reads
// everything and returns [Problems], each with the place that it comes from.
package config
