// Package giveback returns memory to the system while a process is idle. Under
// load the heap may grow to several times the live data, so that it is collected
// seldom; when idle it is collected often, and free memory is returned (decision
// 0028).
package giveback
