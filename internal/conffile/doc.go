// Package conffile parses configuration files, YAML or JSON, into trees whose nodes
// know their line, so that the interpreter of a file can say where each mistake is.
// It also has what all of them need: typed values, variables, suggestions for keys,
// lists of problems. It knows no key of any file.
package conffile
