// Package rest provides tools that are one HTTP request each.
//
//	arguments ──▶ Schema ──▶ Build ──▶ Request ──▶ Client ──▶ Result
//	              valid?     fill the  method,     HTTP       content kinds
//	                         templates URL, body   request    by media type
//
// Templates have the form ${parameters.NAME}, nested as ${parameters.a.b} or
// ${parameters.list[0].b}. They may stand in the URL, in values of headers and
// in strings of the body. A template that is the whole value of a query
// parameter, a header or a member of the body is optional: without its argument
// that parameter, header or member is left out. Anywhere else the argument is
// required.
//
// Arguments can never choose the scheme, the host or the port, leave their
// segment of the path, or add a header. A request also never reaches a
// link-local or metadata address that the configuration does not name itself,
// whatever name or redirect leads there.
//
// Package openapi makes an Action for each of its tools, and uses the same
// Client.
package rest
