// Package llmtest is a scripted model endpoint on loopback, in the protocols
// of both vendors, for tests of the loop and of what is built on it. It is
// strict: a conversation that the vendor would refuse is answered with its 400,
// and fails the test.
package llmtest
