package api

import "time"

// Resources is the answer to GET /api/resources.
type Resources struct {
	Resources []Resource `json:"resources"` // configured resources by name, then held folders and branches
}

// Resource is something that a run holds while it works.
type Resource struct {
	// Kind is resource (configured), folder (one run at a time works in it) or land (one task at
	// a time lands on this branch).
	Kind     string           `json:"kind"`
	Name     string           `json:"name"` // for a folder its path, on the hosts of the agents that hold it
	Capacity int              `json:"capacity"`
	Free     int              `json:"free"`
	Waiting  int              `json:"waiting"`           // tasks that need it, among the first 1,000 waiting ones; only for kind resource
	Holders  []ResourceHolder `json:"holders,omitempty"` // longest holder first
}

// ResourceHolder is a run that holds a resource. Its values are not shown.
type ResourceHolder struct {
	Agent   string     `json:"agent"`
	QueueID string     `json:"queue_id,omitempty"` // "": the task has ended, and its agent has not confirmed it
	N       int        `json:"n"`
	Since   *time.Time `json:"since,omitempty"`
}
