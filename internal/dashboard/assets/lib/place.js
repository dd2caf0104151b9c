// The subject of a page, and its state when it was left: Back restores the scroll
// position and what the page kept.
import { store, useEffect } from "./dom.js";

// subject is what the page is about, for the tab's title; "" shows only the
// page's name.
export const subject = store("");

// useSubject sets the subject while the component is mounted.
export const useSubject = (text) => useEffect(() => {
  subject.set(text ?? "");
  return () => subject.set("");
}, [text]);

const most = 20; // remembered pages
const patience = 1500; // ms for a page to regain its length

const left = new Map(); // address → {top, kept}
let keeper = null; // returns what the current page keeps
let back = false; // the page was reached by Back or Forward
let stop = () => {};

const address = () => location.pathname + location.search;

// leave stores the state of the page at an address.
export const leave = (at) => {
  stop();
  left.delete(at);
  left.set(at, { top: scrollY, kept: keeper?.() });
  if (left.size > most) left.delete(left.keys().next().value);
};

// arrive is called when a page was reached. After Back it scrolls to the old position
// as soon as the page is long enough, unless the user scrolls first.
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

// kept is what the page at this address kept; only after Back.
export const kept = () => (back ? left.get(address())?.kept : undefined);

// useKept makes a page keep the result of make when it is left.
export const useKept = (make) => useEffect(() => {
  keeper = make;
  return () => { if (keeper === make) keeper = null; };
});

// neighbours of a task in the list that it was opened from: {before, after}, ids or
// undefined.
export const neighbours = (id) => {
  for (const { kept } of [...left.values()].reverse()) {
    const ids = kept?.found?.tasks.map((t) => t.queue_id) ?? [];
    const at = ids.indexOf(id);
    if (at >= 0) return { before: ids[at - 1], after: ids[at + 1] };
  }
  return {};
};
