package signalbox

import "slices"

// The clones share no memory with their originals. A Task needs no clone: nothing that it
// points to ever changes.

// Clone copies a request; nil for nil.
func (q *Request) Clone() *Request {
	if q == nil {
		return nil
	}
	c := *q
	c.Project, c.Thinking, c.Workspace = cloned(q.Project), cloned(q.Thinking), cloned(q.Workspace)
	c.SealedEnv, c.AllowedTools = slices.Clone(q.SealedEnv), slices.Clone(q.AllowedTools)
	c.Arguments, c.Metadata = slices.Clone(q.Arguments), slices.Clone(q.Metadata)
	c.Land = cloned(q.Land)
	c.Checking = q.Checking.clone()
	return &c
}

// Clone copies a result; nil for nil.
func (r *Result) Clone() *Result {
	if r == nil {
		return nil
	}
	c := *r
	c.ExitCode = cloned(r.ExitCode)
	c.LogTimes, c.Calls = slices.Clone(r.LogTimes), slices.Clone(r.Calls)
	if c.Changes = cloned(r.Changes); c.Changes != nil {
		c.Changes.Files = slices.Clone(c.Changes.Files)
	}
	if c.Checked = cloned(r.Checked); c.Checked != nil {
		c.Checked.Results = slices.Clone(c.Checked.Results)
		for i := range c.Checked.Results {
			c.Checked.Results[i].ExitCode = cloned(c.Checked.Results[i].ExitCode)
		}
	}
	c.Landed = cloned(r.Landed)
	return &c
}

// Clone copies a schedule.
func (s Schedule) Clone() Schedule {
	s.Project, s.Thinking, s.Workspace = cloned(s.Project), cloned(s.Thinking), cloned(s.Workspace)
	s.Checking, s.Landing = s.Checking.clone(), cloned(s.Landing)
	return s
}

func (c Checking) clone() Checking { return Checking{slices.Clone(c.Checks), cloned(c.Retries)} }

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
