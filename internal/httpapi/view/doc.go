// Package view converts tasks, agents and tool queues to the wire types of package api.
// If the result depends on the caller, the caller is a parameter.
package view
