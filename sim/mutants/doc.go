// Package mutants is a list of deliberate bugs, at least one for each fault that was seen in the systems this
// one grew out of and in its peers, and the tool that shows that the tests catch each of them.
//
// The product's code contains none of them. A mutant is a snippet of a source file and its replacement. The
// changed file is passed to the go tool as an overlay to build the tests of one package. The file on disk is
// never touched.
//
//	go test -tags mutants -timeout 2h -v ./sim/mutants
//
// This runs the tests that must catch each mutant, first without it and then with it, and fails if one is not
// caught, does not compile, or only hangs. Without the tag, the tests check that each snippet occurs in its
// file exactly once, and that every fault has a mutant.
package mutants
