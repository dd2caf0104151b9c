// Real paths below /ui/: each page has an address for links, bookmarks and history.
import { store, useStore } from "./dom.js";
import { arrive, leave } from "./place.js";

const root = "/ui/";

// routes: path below /ui/ → page name. :x matches one part.
const routes = [
  ["", "now"], ["tasks", "tasks"], ["tasks/:id", "task"], ["agents", "agents"], ["agents/:name", "agent"], ["agents/:name/conversations/:id", "conversation"],
  ["capacity", "capacity"], ["schedules", "schedules"], ["schedules/:id", "schedules"], ["usage", "usage"], ["audit", "audit"], ["users", "users"], ["tokens", "tokens"],
];

// match finds the page of a path: {name, params}; name "missing" if there is none.
export const match = (path) => {
  const parts = path.slice(root.length).replace(/\/$/, "").split("/");
  for (const [pattern, name] of routes) {
    const wanted = pattern.split("/");
    if (wanted.length !== parts.length) continue;
    const params = {};
    if (wanted.every((w, i) => (w.startsWith(":") ? parts[i] && (params[w.slice(1)] = decode(parts[i])) : w === parts[i]))) return { name, params };
  }
  return { name: "missing", params: {} };
};

const decode = (part) => {
  try { return decodeURIComponent(part); } catch { return part; }
};

const read = () => ({ ...match(location.pathname), path: location.pathname, query: new URLSearchParams(location.search) });

export const route = store(read());

// useRoute is {name, params, path, query}.
export const useRoute = () => useStore(route);

// go navigates to a path of these pages. With replace it replaces the history entry,
// for example for each letter of a search.
export const go = (to, { replace = false } = {}) => {
  const moved = new URL(to, location.href).pathname !== location.pathname;
  if (!replace) leave(address);
  history[replace ? "replaceState" : "pushState"](null, "", to);
  address = location.pathname + location.search;
  arrive(false);
  route.set(read());
  if (moved) begin();
};

// begin scrolls to the top and focuses the new content, so that a screen reader
// announces the page.
const begin = () => {
  scrollTo(0, 0);
  requestAnimationFrame(() => document.querySelector("main")?.focus({ preventScroll: true }));
};

// place.js restores the scroll position once the page has its length.
history.scrollRestoration = "manual";
let address = location.pathname + location.search;
addEventListener("popstate", () => {
  leave(address);
  address = location.pathname + location.search;
  arrive(true);
  route.set(read());
});

// Links between pages do not reload the document.
document.addEventListener("click", (e) => {
  const a = e.target.closest?.("a[href]");
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  if (a.target || a.hasAttribute("download") || a.origin !== location.origin || !a.pathname.startsWith(root)) return;
  e.preventDefault();
  if (a.hash && a.pathname === location.pathname) return document.querySelector(a.hash)?.focus();
  go(a.pathname + a.search);
});

// link returns the attributes of an <a> for a path.
export const link = (to) => ({ href: to });
export const taskPath = (id) => `${root}tasks/${encodeURIComponent(id)}`;
export const agentPath = (name) => `${root}agents/${encodeURIComponent(name)}`;
// conversationPath is the path of an agent's conversation, by session id; "new" starts one.
export const conversationPath = (name, id) => `${agentPath(name)}/conversations/${encodeURIComponent(id)}`;
export const schedulePath = (id) => `${root}schedules/${encodeURIComponent(id)}`;
export const capacityPath = (name) => `${root}capacity${name ? "?name=" + encodeURIComponent(name) : ""}`;
export const usagePath = (agent) => `${root}usage?agent=${encodeURIComponent(agent)}`;
// searchPath is the path of a task search; more has sort, group and hide.
export const searchPath = (q, more = {}) => {
  const set = Object.entries({ q, ...more }).filter(([, value]) => value).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `${root}tasks${set.length > 0 ? `?${set.join("&")}` : ""}`;
};
