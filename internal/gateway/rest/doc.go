// Package rest provides tools that are one HTTP request each.
//
//	arguments ──▶ Schema ──▶ Build ──▶ Request ──▶ Client ──▶ Result
//	              do they    fill the  method,     the one    content kinds
//	              fit?       templates URL, body   way out    by media type
//
// Templates: ${parameters.NAME}, nested as ${parameters.a.b} or
// ${parameters.list[0].b}, in the URL, the values of headers and the strings of
// the body. A template that is all of a
// query value, a header or a member of the body may go without its argument:
// the pair, the header, the member is then left out. Anywhere else its
// argument is required.
//
// What the arguments cannot do, whatever they are: choose the scheme, the host
// or the port, leave their segment of the path, or add a header. Nor does a
// request reach a link-local or metadata address that the configuration does
// not name itself, by whatever name or redirect it gets there.
//
// Package openapi makes its tools of an Action each, and uses the same Client.
package rest
