// Package top is the terminal view, another client of the live stream.
//
// It shows a board, which the events of the stream keep up to date. It reads
// details, gates and logs with separate requests. Rows keep their place while
// they change: agents and queues are sorted by rank and name, and the selection
// is a task or an agent, not a line of the screen.
//
//	stream ─▶ board ─┐
//	keys ────────────┼─▶ model.Update ─▶ model.View ─▶ terminal
//	answers ─────────┘
//
// The view says when its data is older than 5 s. When the data is older than
// 15 s, it turns grey and nothing can be changed until the director answers
// again, so that nobody acts on outdated data. All text from tasks and agents
// is made safe before layout (text.go), so that no prompt and no log can move
// the cursor.
package top
