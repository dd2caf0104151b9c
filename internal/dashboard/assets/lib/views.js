// Named views of the task list: query, order, grouping and columns. They are stored
// as JSON; invalid ones are ignored.

export const mostViews = 20, longestName = 40; // letters

const fields = ["name", "q", "sort", "group", "hide"];

// readViews parses the stored views.
export const readViews = (text) => {
  let list = [];
  try { list = JSON.parse(text); } catch { /* not ours */ }
  if (!Array.isArray(list)) return [];
  return list.filter((v) => v && fields.every((f) => typeof v[f] === "string") && nameOf(v.name) === v.name && v.name).slice(0, mostViews);
};

// nameOf is the stored form of a name.
export const nameOf = (text) => [...text.trim()].slice(0, longestName).join("");

// putView adds a view, and replaces the one called was and the one with its name;
// null if there are too many.
export const putView = (list, view, was = view.name) => {
  const at = list.findIndex((v) => v.name === was), rest = list.filter((v) => v.name !== was && v.name !== view.name);
  const next = rest.toSpliced(at < 0 ? rest.length : at, 0, view);
  return next.length > mostViews ? null : next;
};

// sameView reports whether two views show the same, regardless of their names.
export const sameView = (a, b) => fields.every((f) => f === "name" || a[f] === b[f]);
