// Package port reads tasks from where they were kept before: the JSON folders
// of a work queue, the Redis keys of an execution queue, the .tasksQueue file
// of an asynchronous tool queue, and the JSON lines of an export. Each becomes
// an api.ExportedTask, which the director's import takes.
//
// A task gets the same id each time it is read, made of its old one, so that
// reading a source twice doubles nothing.
package port
