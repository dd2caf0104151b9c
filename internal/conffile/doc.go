// Package conffile reads configuration files, YAML or JSON, into trees whose
// nodes know their line, so that whoever makes sense of a file can say where
// each mistake stands. It knows no key of any file.
package conffile
