// Package model serves scripted language models on loopback in three real
// wire formats, so that tests drive the real coding CLIs offline:
//
//	POST /v1/messages            Anthropic Messages API
//	POST /v1/responses           OpenAI Responses API
//	POST /v1/chat/completions    OpenAI chat completions
//
// Each streams (server-sent events) or not, as requested. A Script decides
// each turn of the conversation; side requests of a CLI (titles, summaries,
// token counts) are answered without the script.
package model
