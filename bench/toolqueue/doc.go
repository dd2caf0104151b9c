// Command toolqueue measures the tool queues beside what a program would use
// in their place: golang.org/x/sync/semaphore, a buffered channel, and one
// with a context. All are measured in short turns, round after round, so that
// what else the machine does hits them alike; the table shows medians. The
// queue's hooks are set. Then it measures what a wait costs with 100 and with 10,000
// calls in line.
//
//	go run ./bench/toolqueue
package main
