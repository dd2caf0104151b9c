// Package conffile reads configuration files, YAML or JSON, with one parser into
// trees whose nodes know their line, so that whoever interprets a file can say
// where each mistake is. It has what all of them need above that: values of a
// type, variables, the nearest key, lists of problems. It knows no key of any file.
package conffile
