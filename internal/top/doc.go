// Package top is the terminal view: another client of the live stream.
//
// What it shows is a board, which the events of the stream keep up to date;
// details, gates and logs it asks for one by one. Rows keep their place while
// they change: agents and queues stand by name, and what is selected is a task
// or an agent, not a line of the screen.
//
//	stream ─▶ board ─┐
//	keys ────────────┼─▶ model.Update ─▶ model.View ─▶ terminal
//	answers ─────────┘
//
// Data that is older than 5 s is called so, and older than 15 s it is grey,
// and nothing can be changed until the director answers again: what was true
// then need not be what a person would now act on. All text that comes from
// tasks and agents is made safe before it is laid out (text.go), so that no
// prompt and no log can move the cursor.
package top
