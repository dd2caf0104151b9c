// Package command runs command tools: programs that are given one line of JSON
// on their input and whose outputs are the answer (seed async-task-queue).
//
//	Tool ──Check──▶ the input fits its schema
//	     ──Run────▶ Outcome ──Result──▶ what a caller is answered
//
// A run ends when nothing of it lives any more: the program has ended, or was
// ended (its time, a limit, a cancel), and all that it started is dead. Only
// then Run returns, so whoever gave it a slot can give that to another.
//
// It knows neither tasks nor the gateway: internal/gateway/command makes a
// provider of it, internal/tooltask runs it for durable tasks through that.
package command
