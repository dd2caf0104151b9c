// Package giveback returns memory to the system while a process has little to do.
// At work, the heap may grow to several times what is in use, so that it is
// collected seldom; at rest it is collected often and what is free goes back
// (decision 0028).
package giveback
