// Package top is the terminal view: another client of the live stream.
package top
