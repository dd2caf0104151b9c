// Package model serves scripted language models on loopback in three real
// wire formats, so that tests drive the real coding CLIs offline:
//
//	POST /v1/messages            Anthropic Messages API
//	POST /v1/responses           OpenAI Responses API
//	POST /v1/chat/completions    OpenAI chat completions
//
// each streaming (server-sent events) or not, as the request asks. A Script
// decides each turn of the conversation; what a CLI asks on the side (titles,
// summaries, token counts) is answered without the script.
package model
