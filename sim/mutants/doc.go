// Package mutants is a list of bugs made by hand, one at least for each fault
// that was seen in the systems this one grew out of and in its peers, and what
// it takes to show that the tests catch each of them.
//
// The product's code holds none of them. A mutant is a snippet of a source file
// and what stands in its place; the file so changed is handed to the go tool as
// an overlay, which builds the tests of one package with it. The file on disk is
// never touched.
//
//	go test -tags mutants -timeout 2h -v ./sim/mutants
//
// runs the tests that must catch each mutant, first without it and then with it,
// and fails where one is not caught, does not compile, or only hangs. Without
// the tag it is tested that each snippet still stands in its file exactly once,
// and that no fault is without its mutant.
package mutants
