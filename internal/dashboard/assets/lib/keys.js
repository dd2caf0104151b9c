// The keys of the pages. A key is bound where it works, with its help text. The newest
// binding is tried first, so that a dialog comes before its page. Users can switch the
// keys off.
import { useEffect, useRef } from "./dom.js";
import { keysOn } from "./prefs.js";

const bound = []; // {key, text, call, group}
const pairWithin = 1000; // ms between the g and the letter after it
let first = "", firstAt = 0;
let taken = false; // the pressed key was handled here

// bind binds {key: [text, call]}. If a call returns false, the next binding is
// tried. A key may be a pair such as "g n".
export const bind = (keys, group = "This page") => {
  const mine = Object.entries(keys).map(([key, [text, call]]) => ({ key, text, call, group }));
  bound.push(...mine);
  return () => { for (const b of mine) bound.splice(bound.indexOf(b), 1); };
};

// useKeys binds while the component is mounted. The calls may change between
// renderings.
export const useKeys = (keys, group) => {
  const now = useRef(keys);
  now.current = keys;
  const names = Object.keys(keys).join("|");
  useEffect(() => bind(Object.fromEntries(Object.entries(now.current).map(
    ([key, [text]]) => [key, [text, (e) => now.current[key]?.[1](e)]])), group), [names, group]);
};

// listed is the content of the help: [group, [[key, text]]].
export const listed = () => {
  const groups = new Map();
  for (const { key, text, group } of bound) {
    if (!groups.has(group)) groups.set(group, new Map());
    if (text) groups.get(group).set(key, text);
  }
  return [...groups].map(([group, keys]) => [group, [...keys]]);
};

const typing = (el) => el.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) && !/^(checkbox|radio|button)$/.test(el.type));

const pressed = (e) => {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.isComposing || typing(e.target)) return;
  if (keysOn.get() === "off" && e.key !== "?") return;
  if (document.querySelector("dialog[open]")) return; // a dialog has keys of its own
  if (e.key === "Enter" && e.target.closest("a, button, summary")) return;
  const pair = first && performance.now() - firstAt < pairWithin ? `${first} ${e.key}` : "";
  first = "";
  for (const key of pair ? [pair, e.key] : [e.key]) {
    for (const b of bound.toReversed()) {
      if (b.key === key && b.call(e) !== false) {
        taken = true;
        return e.preventDefault();
      }
    }
  }
  if (bound.some((b) => b.key.startsWith(e.key + " "))) { first = e.key; firstAt = performance.now(); }
};
addEventListener("keydown", (e) => { taken = false; pressed(e); });
// Automation may send the character as a separate event: it must not land in the
// field that the key has focused.
addEventListener("keypress", (e) => { if (taken) e.preventDefault(); }, true);
