// Package measure runs comparisons of ours, its peers and the limit of the machine, in
// turns.
//
// A side does one piece of work and returns values. A duel compares sides. The sides of
// a group take turns round after round, one after the other, in reverse order every
// second round, so that other load of the machine affects them equally. A side in
// several duels is measured once per round.
package measure
