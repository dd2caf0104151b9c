// Package openapi makes tools of the operations that an OpenAPI description
// has, versions 3.0 and 3.1, as YAML or JSON, from a file or a URL.
//
//	Spec ──▶ source ──▶ toJSON ──▶ kin-openapi ──▶ operation ──▶ rest.Action
//	         may it      bounds      references,     arguments,     one HTTP
//	         be read?                validation      input schema   request
//
// The arguments of a tool are the operation's parameters and the properties of
// its body, side by side. The body is one argument named body where a name
// would stand for two things, where it is no plain object, and where it may be
// left out although it has required properties.
//
// A description is another's word. References lead only to files in its folder
// or below, or for one at a URL to the same origin; never elsewhere, not even
// for a look. The hosts that it names get no more than the configuration says:
// see server.go. An invalid description is an error as a whole; an operation
// that cannot be a tool is left out with a warning.
package openapi
