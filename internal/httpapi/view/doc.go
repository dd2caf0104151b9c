// Package view shows tasks, agents and tool queues as the wire types of package
// api have them. Where what is shown depends on who asks, that is a parameter.
package view
