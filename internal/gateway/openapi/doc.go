// Package openapi makes tools of the operations of an OpenAPI description,
// versions 3.0 and 3.1, in YAML or JSON, from a file or a URL.
//
//	Spec ──▶ source ──▶ toJSON ──▶ kin-openapi ──▶ operation ──▶ rest.Action
//	         may it      bounds      references,     arguments,     one HTTP
//	         be read?                validation      input schema   request
//
// The arguments of a tool are the operation's parameters and the properties of
// its body, side by side. The body is instead one argument named body if a
// name would be ambiguous, if the body is not a plain object, and if the body
// is optional although it has required properties.
//
// A description is untrusted input. References lead only to files in its
// folder or below, or, if the description is at a URL, to the same origin;
// nothing else is even requested. The hosts that it names get no more than the
// configuration allows: see hostPolicy. An invalid description is an error as
// a whole; an operation that cannot be a tool is skipped with a warning.
package openapi
