package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/client"
)

// resolve turns what a person typed into the id of a task: a whole id, a
// beginning or end that only one has, or the short form with its dots.
func resolve(ctx context.Context, c *client.Client, typed string) (string, error) {
	if signalbox.ValidID(typed) {
		return typed, nil
	}
	part := typed
	if _, end, short := strings.Cut(typed, "…"); short {
		part = end
	}
	if strings.TrimSpace(part) == "" {
		return "", usage("%q is not a task id", typed)
	}
	ids, err := c.Find(ctx, part)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 1:
		return ids[0], nil
	case slices.Contains(ids, part):
		return part, nil
	case len(ids) == 0:
		f := &fault{exit: exitNotFound, code: "not_found", message: "no task's id begins or ends with " + part}
		return "", f.hinted("%s", hints["not_found"])
	}
	f := &fault{exit: exitUsage, code: "ambiguous", message: "several tasks' ids begin or end with " + part + ":", matches: ids}
	return "", f.hinted("give more of the id")
}

// shortID is an id as people recognise it.
func shortID(id string) string {
	const shown = 4
	rest, ours := strings.CutPrefix(id, signalbox.IDPrefix)
	if !ours || len(rest) <= 2*shown {
		return clean(id)
	}
	return signalbox.IDPrefix + "…" + clean(rest[len(rest)-shown:])
}
