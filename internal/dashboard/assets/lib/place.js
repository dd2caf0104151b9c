// What a page is called, and how it was left: a page that Back leads to is as it
// was, with its scroll position and what it kept.
import { store, useEffect } from "./dom.js";

// subject is what the page is about, for the title of the tab; "" names the
// page alone.
export const subject = store("");

// useSubject names what the page is about as long as it is there.
export const useSubject = (text) => useEffect(() => {
  subject.set(text ?? "");
  return () => subject.set("");
}, [text]);

const most = 20; // pages that are remembered
const patience = 1500; // ms for a page to become as long as it was

const left = new Map(); // address → {top, kept}
let keeper = null; // of the page that is shown: what it keeps
let back = false; // the page was reached by Back or Forward
let stop = () => {};

const address = () => location.pathname + location.search;

// leave remembers how the page at an address stands.
export const leave = (at) => {
  stop();
  left.delete(at);
  left.set(at, { top: scrollY, kept: keeper?.() });
  if (left.size > most) left.delete(left.keys().next().value);
};

// arrive says how the page at the address was reached. After Back it scrolls to
// where it was left as soon as it is long enough, unless a person scrolls first.
export const arrive = (byBack) => {
  back = byBack;
  const top = byBack ? left.get(address())?.top : 0;
  if (!top) return;
  const until = performance.now() + patience;
  let frame = 0;
  stop = () => {
    cancelAnimationFrame(frame);
    for (const kind of ["wheel", "touchstart", "keydown"]) removeEventListener(kind, stop);
    stop = () => {};
  };
  const look = () => {
    const there = document.documentElement.scrollHeight - innerHeight >= top;
    if (there) scrollTo(0, top);
    if (there || performance.now() > until) return stop();
    frame = requestAnimationFrame(look);
  };
  for (const kind of ["wheel", "touchstart", "keydown"]) addEventListener(kind, stop, { passive: true });
  frame = requestAnimationFrame(look);
};

// kept is what the page at this address kept when it was left; only after Back.
export const kept = () => (back ? left.get(address())?.kept : undefined);

// useKept has a page keep what make returns when it is left.
export const useKept = (make) => useEffect(() => {
  keeper = make;
  return () => { if (keeper === make) keeper = null; };
});

// neighbours of a task in the list from which it was opened: {before, after},
// ids or undefined.
export const neighbours = (id) => {
  for (const { kept } of [...left.values()].reverse()) {
    const ids = kept?.found?.tasks.map((t) => t.queue_id) ?? [];
    const at = ids.indexOf(id);
    if (at >= 0) return { before: ids[at - 1], after: ids[at + 1] };
  }
  return {};
};
