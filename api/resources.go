package api

import "time"

// Resources is the answer to GET /api/resources.
type Resources struct {
	Resources []Resource `json:"resources"` // those of the configuration by name, then folders and branches that are held
}

// Resource is something that runs hold while they work.
type Resource struct {
	// Kind is resource (of the configuration), folder (in which one run at a time works) or land
	// (a branch onto which one task at a time lands).
	Kind     string           `json:"kind"`
	Name     string           `json:"name"` // of a folder its path, on the hosts of the agents that hold it
	Capacity int              `json:"capacity"`
	Free     int              `json:"free"`
	Waiting  int              `json:"waiting"`           // tasks that need it, among the first 1,000 that wait; of a resource alone
	Holders  []ResourceHolder `json:"holders,omitempty"` // the longest one first
}

// ResourceHolder is a run that holds something. Its values are not told.
type ResourceHolder struct {
	Agent   string     `json:"agent"`
	QueueID string     `json:"queue_id,omitempty"` // "": the task has ended, and its agent has not confirmed it
	N       int        `json:"n"`
	Since   *time.Time `json:"since,omitempty"`
}
