package access

// What tests need to know of the limits on guesses and on rows of refusals.
const (
	GuessBurst  = guessBurst
	GuessRefill = guessRefill
	AllDenials  = allDenials
)
