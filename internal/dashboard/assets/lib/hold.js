// Rows do not move under the pointer. While the pointer or the focus is in a list, or
// rows are picked, its rows keep their places. Their content is still updated; moves
// are counted and wait.
import { useRef, useState } from "./dom.js";

// useHold takes the items in their newest order and returns
//   items    {key, item, gone} in the order to show; removed ones stay, with gone: true
//   changes  how many were added, removed or moved since
//   release  shows the newest order
//   props    for the element around the list
// picked holds like pointing. of identifies the list: another list does not keep the
// order of the previous one.
export const useHold = (list, keyOf, picked = false, of = "") => {
  const [pointed, setPointed] = useState(false);
  const order = useRef([]);
  const last = useRef(new Map()), shown = useRef(of);
  if (shown.current !== of) { shown.current = of; order.current = []; }
  const newest = list.map((item) => ({ key: keyOf(item), item, gone: false }));
  const byKey = new Map(newest.map((e) => [e.key, e]));
  const held = (pointed || picked) && order.current.length > 0;
  if (!held) {
    order.current = newest.map((e) => e.key);
    last.current = byKey;
    return { items: newest, changes: 0, held, release: () => {}, props: propsOf(setPointed) };
  }
  for (const [key, e] of byKey) last.current.set(key, e);
  const items = order.current.map((key) => byKey.get(key) ?? { ...last.current.get(key), gone: true });
  const release = () => { order.current = newest.map((e) => e.key); setPointed(false); };
  return { items, changes: count(order.current, newest, byKey), held, release, props: propsOf(setPointed) };
};

// count is how many keys were added, removed, or moved relative to the others.
const count = (order, newest, byKey) => {
  const before = new Set(order);
  const stayed = order.filter((key) => byKey.has(key));
  const now = newest.map((e) => e.key).filter((key) => before.has(key));
  const moved = now.filter((key, i) => stayed[i] !== key).length;
  return newest.length - now.length + order.length - stayed.length + moved;
};

const propsOf = (setPointed) => ({
  onPointerEnter: (e) => { if (e.pointerType === "mouse") setPointed(true); },
  onPointerLeave: () => setPointed(false),
  // Focus by keyboard holds; the focus that a click leaves does not.
  onfocusin: (e) => { if (e.target.matches(":focus-visible")) setPointed(true); },
  onfocusout: (e) => { if (!e.currentTarget.contains(e.relatedTarget)) setPointed(e.currentTarget.matches(":hover")); },
});
