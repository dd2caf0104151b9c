// The lines of Output in the document. They are updated by hand: comparing two thousand
// lines five times a second would be too slow.
import { get, stream } from "../lib/api.js";
import { taskPath } from "../lib/router.js";
import { clockOf } from "../lib/time.js";
import { Lines, named, nameOf, timed } from "./lines.js";

const tick = 200; // ms between two updates
const nearEnd = 24; // distance in px that counts as the end
const mostFound = 2000; // places that are marked as found
const mostWholeLines = 30_000;

export const mostInPlace = 2 << 20; // bytes of a whole log that are shown on the page

const outputPath = (id, query) => `/api/queue/${encodeURIComponent(id)}/output?${query}`;

// pieces yields a log from its beginning, in pieces: from the agent if whole, else what the
// director keeps. It ends where there is no more yet.
export async function* pieces(id, whole, signal) {
  for (let after = 0; ;) {
    const piece = await get(outputPath(id, `after=${after}${whole ? "&whole=true" : ""}`), { signal });
    yield piece;
    if (piece.done || piece.next <= after) return;
    after = piece.next;
  }
}

// open shows the output of a task in an element and follows it. It starts at the lines in
// the address, else for a failed task at failure, the line with the cause, else at the end.
// tell gets what to show beside it; whole reads the agent's log.
export const open = (id, box, tell, { failure, whole }) => {
  const path = taskPath(id);
  const here = () => location.pathname === path;
  const s = {
    path, failure, whole, box, lines: new Lines(whole ? mostWholeLines : undefined), shown: 0, following: !whole, done: false, next: 0, broken: null, error: null, missing: false,
    open: null, top: 0, marked: null, lost: null, pattern: null, from: 0, ranges: [],
  };
  let wanted = here() ? named(location.hash) : null;
  let opened = false; // only once: then the user scrolls
  let timer = 0, stop = () => {};
  const told = () => tell(viewOf(s));
  const soon = () => { timer ||= setTimeout(() => { timer = 0; draw(s); openWhere(); told(); }, tick); };
  const openWhere = () => {
    const known = wanted && s.lines.lines.some((line) => line.n >= wanted.from && line.n <= wanted.to);
    if (known || (wanted && s.done && wanted.to === s.lines.count + 1)) {
      show(s, wanted);
      wanted = null;
      opened = true;
    } else if (wanted && s.done) {
      s.lost = wanted;
      wanted = null;
    }
    if (opened || !s.done) return;
    opened = true;
    const found = failure && !whole && s.lines.find(failure);
    if (found) show(s, { from: found.n, to: found.n });
  };
  const put = (data) => {
    if (data.truncated) { s.lines.gap(); s.missing = true; }
    s.lines.goOn(data.line);
    for (const [text, at] of timed(data)) s.lines.push(text, at);
    s.next = data.next;
    s.done = Boolean(data.done);
    soon();
    return !s.done;
  };
  const start = () => {
    stop();
    stop = () => {};
    // A hidden tab closes its connection: a browser has few.
    if (s.done || document.hidden) return;
    stop = stream(outputPath(id, `after=${s.next}`), ({ event, data }) => (event === "output" ? put(data) : true), (now, cause) => {
      s.broken = now === "open" || s.done ? null : now === "ended" ? cause.message : cause ? "waiting for the director" : s.broken;
      soon();
    });
  };
  const read = async () => {
    const over = new AbortController();
    stop = () => over.abort();
    try {
      for await (const piece of pieces(id, true, over.signal)) put(piece);
    } catch (error) {
      if (over.signal.aborted) return;
      s.error = error;
    }
    s.done = true;
    soon();
  };
  const scrolled = () => {
    if (box.scrollTop === s.top) return; // our own scrolling, which may arrive after Pause
    s.top = box.scrollTop;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < nearEnd;
    if (atEnd !== s.following && !s.done) { s.following = atEnd; soon(); }
  };
  const goTo = (lines) => { show(s, lines); told(); };
  const pick = (lines) => {
    if (here()) history.replaceState(null, "", lines ? nameOf(lines) : location.pathname + location.search);
    s.following &&= !lines;
    mark(s, lines);
    told();
  };
  const clicked = (e) => {
    const number = e.target.closest("a");
    if (!number || e.ctrlKey || e.metaKey || e.button !== 0) return;
    e.preventDefault();
    const n = Number(number.dataset.n), from = e.shiftKey ? s.marked?.from ?? n : n;
    pick({ from: Math.min(from, n), to: Math.max(from, n) });
  };
  const addressed = () => { const lines = here() && named(location.hash); if (lines) goTo(lines); };
  if (!whole) document.addEventListener("visibilitychange", start);
  addEventListener("hashchange", addressed);
  box.addEventListener("scroll", scrolled, { passive: true });
  box.addEventListener("click", clicked);
  if (whole) read();
  else start();
  return {
    fails(line) { s.failure = line; told(); },
    follow(on) { s.following = on; draw(s); told(); },
    show: (n) => goTo({ from: n, to: n }),
    unmark: () => pick(null),
    // search finds the lines with a text, ignoring case, and shows the first one after the
    // visible part; "" ends it.
    search(text) {
      if (!s.pattern) s.from = Number([...box.children].find((one) => one.offsetTop + one.offsetHeight > box.offsetTop + box.scrollTop)?.dataset.n ?? 0);
      s.pattern = text ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi") : null;
      const all = hits(s);
      if (all.length > 0) goTo(lineOf(all.find((n) => n >= s.from) ?? all[0]));
      paint(s);
      told();
    },
    // step goes to the next hit, or with -1 to the one before.
    step(by) {
      const all = hits(s), at = s.marked?.from ?? 0;
      const next = by > 0 ? all.find((n) => n > at) ?? all[0] : all.findLast((n) => n < at) ?? all.at(-1);
      if (next) goTo(lineOf(next));
    },
    close() {
      stop();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", start);
      removeEventListener("hashchange", addressed);
      box.removeEventListener("scroll", scrolled);
      box.removeEventListener("click", clicked);
      s.pattern = null;
      paint(s);
      box.replaceChildren();
    },
  };
};

const lineOf = (n) => ({ from: n, to: n });

// hits returns the numbers of the lines with matches.
const hits = (s) => {
  if (!s.pattern) return [];
  const found = s.lines.lines.filter((line) => !line.gap && line.text.search(s.pattern) >= 0).map((line) => line.n);
  if (s.lines.last.search(s.pattern) >= 0) found.push(s.lines.count + 1);
  return found;
};

const viewOf = (s) => {
  const all = hits(s);
  return {
    follow: s.following, unseen: Math.max(0, s.lines.count - Math.floor(s.shown)), left: s.lines.left, any: s.lines.lines.length > 0 || s.lines.last !== "",
    done: s.done, broken: s.broken, error: s.error, failure: s.done ? s.lines.find(s.failure) : null, size: s.next, missing: s.missing || s.lines.left > 0,
    marked: s.marked, lost: s.lost, hits: all.length, hit: s.marked ? all.indexOf(s.marked.from) + 1 : 0,
  };
};

// draw updates the element. While paused it draws only the first screen and the end.
const draw = (s, always) => {
  if (s.lines.lines.length > 0 || s.lines.last !== "") s.box.classList.remove("is-empty"); // hidden content has no end to scroll to
  if (!s.following && !s.done && !always && s.shown > 0) return;
  const first = s.lines.lines[0]?.n ?? s.lines.count + 1;
  const stay = s.box.scrollHeight - s.box.scrollTop;
  while (s.box.firstChild && s.box.firstChild !== s.open && Number(s.box.firstChild.dataset.n) < first) s.box.firstChild.remove();
  s.open ??= s.box.appendChild(document.createElement("div"));
  let from = s.lines.lines.length;
  while (from > 0 && s.lines.lines[from - 1].n > s.shown) from--;
  const fresh = document.createDocumentFragment();
  for (const one of s.lines.lines.slice(from)) fresh.append(fill(s, document.createElement("div"), one));
  s.box.insertBefore(fresh, s.open);
  s.shown = s.lines.lines.at(-1)?.n ?? s.shown;
  fill(s, s.open, { n: s.lines.count + 1, text: s.lines.last, runs: s.lines.runs });
  s.open.hidden = s.lines.last === "";
  if (s.following) s.box.scrollTop = s.box.scrollHeight;
  else if (s.done) s.box.scrollTop = s.box.scrollHeight - stay;
  s.top = s.box.scrollTop;
  if (s.pattern) paint(s);
};

// fill puts a line into an element: its number, a link, and a span for each colour.
const fill = (s, element, { n, text, runs = [], gap, at }) => {
  const number = Object.assign(document.createElement("a"), { className: "output-n", href: `${s.path}#L${n}`, tabIndex: -1, ariaLabel: `Line ${n}` });
  number.dataset.n = n;
  element.replaceChildren(...(gap ? [] : [number]), text.slice(0, runs[0]?.[0]));
  runs.forEach(([from, name], i) => {
    const part = text.slice(from, runs[i + 1]?.[0]);
    element.append(name ? Object.assign(document.createElement("span"), { className: name, textContent: part }) : part);
  });
  element.dataset.n = n;
  if (at) element.dataset.at = clockOf(at);
  element.className = gap ? "output-gap" : isMarked(s, n) ? "is-marked" : "";
  return element;
};

const isMarked = (s, n) => Boolean(s.marked) && n >= s.marked.from && n <= s.marked.to;

const mark = (s, lines) => {
  s.marked = lines;
  for (const one of s.box.children) one.classList.toggle("is-marked", isMarked(s, Number(one.dataset.n)));
};

// show scrolls to lines and marks them, without scrolling the page.
const show = (s, lines) => {
  s.following = false;
  draw(s, true);
  mark(s, lines);
  const one = s.box.querySelector(".is-marked");
  s.lost = one ? null : lines;
  if (one) s.box.scrollTop = one.offsetTop - s.box.offsetTop - s.box.clientHeight / 2;
  s.top = s.box.scrollTop;
};

// paint highlights the matches without changing the elements.
const paint = (s) => {
  if (!globalThis.CSS?.highlights) return;
  const all = CSS.highlights.get("found") ?? new Highlight();
  for (const old of s.ranges) all.delete(old);
  s.ranges = [];
  CSS.highlights.set("found", all);
  for (const one of s.pattern ? s.box.children : []) {
    if (s.ranges.length >= mostFound) break;
    for (const found of one.textContent.matchAll(s.pattern)) s.ranges.push(rangeOf(one, found.index, found.index + found[0].length));
  }
  for (const range of s.ranges) all.add(range);
};

// rangeOf is the range of an element's text between two positions.
const rangeOf = (element, from, to) => {
  const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), ends = {};
  for (let at = 0, node; (node = walk.nextNode()); at += node.length) {
    if (from >= at && from < at + node.length) Object.assign(ends, { startContainer: node, startOffset: from - at });
    if (to > at && to <= at + node.length) Object.assign(ends, { endContainer: node, endOffset: to - at });
  }
  return new StaticRange(ends);
};
