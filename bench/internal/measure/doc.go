// Package measure runs comparisons: ours, what it is compared with, and what
// the machine could do at most, in turns.
//
// A side does one piece of work and says what it saw. A duel sets sides beside
// each other. The sides of a group have their turns round after round, one
// after the other, in reverse order every second round, so that whatever else
// the machine does hits them alike. A side that stands in several duels is
// measured once a round.
package measure
