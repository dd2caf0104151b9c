// Package llmtest is a scripted model endpoint on loopback, with the protocols
// of both vendors, for tests of the loop and of code that uses it. It is
// strict: a conversation that the vendor would refuse is answered with the
// vendor's 400 and fails the test.
package llmtest
