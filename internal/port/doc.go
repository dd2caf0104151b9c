// Package port reads tasks from other systems: the JSON folders of a work
// queue, the Redis keys of an execution queue, the .tasksQueue file of an
// asynchronous tool queue, and the JSON lines of an export. Each task becomes
// an api.ExportedTask, which the director's import accepts.
//
// A task gets the same ID each time it is read, derived from its old one, so
// that reading a source twice creates no duplicates.
package port
