package access

// Limits of guesses and recorded refusals, for tests.
const (
	GuessBurst  = guessBurst
	GuessRefill = guessRefill
	AllDenials  = allDenials
)
