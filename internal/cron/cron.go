// Package cron says when a job is due: five fields or an @form, in a time
// zone. It is pure: the time is handed in.
package cron

import "time"

// Expr is a parsed expression. The zero Expr is never due.
type Expr struct{}

// Parse reads an expression. Errors are *Error.
func Parse(text string) (Expr, error) { panic("being built") }

// Error says what is wrong with an expression, and what to write instead.
type Error struct {
	Field string // minute, hour, day of month, month, day of week; "" is the whole
	Text  string
}

func (e *Error) Error() string { return e.Text }

// Next returns the first instant after a moment, in UTC.
func (e Expr) Next(after time.Time, zone *time.Location) time.Time { panic("being built") }

// String is the expression as it was written, its blanks made one.
func (e Expr) String() string { panic("being built") }

// Words says the expression in plain words, without the zone.
func (e Expr) Words() string { panic("being built") }

// Zone finds a time zone by its IANA name; "" is UTC.
func Zone(name string) (*time.Location, error) { panic("being built") }
