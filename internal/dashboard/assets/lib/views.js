// Views of the list of tasks that a person gave a name: query, order, grouping and
// columns. They are kept as JSON; what is broken is left out.

export const mostViews = 20, longestName = 40; // letters

const fields = ["name", "q", "sort", "group", "hide"];

// readViews reads what was kept.
export const readViews = (text) => {
  let list = [];
  try { list = JSON.parse(text); } catch { /* not ours */ }
  if (!Array.isArray(list)) return [];
  return list.filter((v) => v && fields.every((f) => typeof v[f] === "string") && nameOf(v.name) === v.name && v.name).slice(0, mostViews);
};

// nameOf is a name as it is kept.
export const nameOf = (text) => [...text.trim()].slice(0, longestName).join("");

// putView adds a view, in the place of the one called was, and of the one with its name;
// null where there are too many.
export const putView = (list, view, was = view.name) => {
  const at = list.findIndex((v) => v.name === was), rest = list.filter((v) => v.name !== was && v.name !== view.name);
  const next = rest.toSpliced(at < 0 ? rest.length : at, 0, view);
  return next.length > mostViews ? null : next;
};

// sameView says that two show the same, whatever they are called.
export const sameView = (a, b) => fields.every((f) => f === "name" || a[f] === b[f]);
