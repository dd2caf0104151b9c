// Texts about worktrees.

const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;

// sizeText formats bytes; atLeast: there may be more.
export const sizeText = (n, atLeast = false) => {
  let text = `${n} B`;
  for (const [i, unit] of ["KiB", "MiB", "GiB", "TiB"].entries()) {
    const size = n / 2 ** (10 * (i + 1));
    if (size >= 1) text = `${size.toFixed(1)} ${unit}`;
  }
  return atLeast ? `over ${text}` : text;
};

// stateText describes the state of a worktree; toneOf is its tone.
export const stateText = (w) => {
  if (w.state === "uncommitted" && !(w.files > 0)) return "work in a nested repository";
  if (w.state === "uncommitted") return plural(w.files, "file not committed", "files not committed");
  if (w.state === "unlanded") return `${plural(w.commits_count, "commit", "commits")} not landed`;
  return w.state === "in_use" ? "in use" : w.state;
};
export const toneOf = (w) => ({ in_use: "busy", uncommitted: "warn", unlanded: "warn", landed: "good", unknown: "bad" })[w.state] ?? "quiet";

// lostOf lists what would be lost with a worktree, and with its branch: [{head, lines, more}].
export const lostOf = (w, branch) => {
  const part = (head, count, lines = []) => ({ head, lines, more: count > lines.length ? `and ${count - lines.length} more` : "" });
  const lost = [];
  if (w.files > 0) lost.push(part(plural(w.files, "uncommitted file would be lost:", "uncommitted files would be lost:"), w.files, w.uncommitted));
  if (w.nested_count > 0) lost.push(part(plural(w.nested_count, "repository inside it has work that would be lost:", "repositories inside it have work that would be lost:"), w.nested_count, w.nested));
  if (branch && w.commits_count > 0) lost.push(part(`${plural(w.commits_count, "commit", "commits")} of ${w.branch} would be lost:`, w.commits_count, w.commits));
  return lost;
};

// discardPath is the API path to discard a worktree, with the state that the user saw.
export const discardPath = (w, branch) => `/api/agents/${encodeURIComponent(w.agent)}/workspaces/${encodeURIComponent(w.name)}?${new URLSearchParams({ ...(w.seen && { seen: w.seen }), ...(branch && { delete_branch: "true" }) })}`;
