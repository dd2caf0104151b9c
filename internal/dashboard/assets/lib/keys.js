// The keys of the pages. A key is bound where it works, with the words of the
// help; the last who bound it is asked first, so that a dialog goes before its
// page. They can be switched off, for those whose own keys they would take.
import { useEffect, useRef } from "./dom.js";
import { keysOn } from "./prefs.js";

const bound = []; // {key, text, call, group}
const pairWithin = 1000; // ms between the g and the letter after it
let first = "", firstAt = 0;
let taken = false; // the key that is down did something here

// bind binds {key: [text, call]}; a call that returns false did nothing, and
// the next is asked. A key may be two, as in "g n".
export const bind = (keys, group = "This page") => {
  const mine = Object.entries(keys).map(([key, [text, call]]) => ({ key, text, call, group }));
  bound.push(...mine);
  return () => { for (const b of mine) bound.splice(bound.indexOf(b), 1); };
};

// useKeys binds as long as the component is there. The calls may change from
// one rendering to the next.
export const useKeys = (keys, group) => {
  const now = useRef(keys);
  now.current = keys;
  const names = Object.keys(keys).join("|");
  useEffect(() => bind(Object.fromEntries(Object.entries(now.current).map(
    ([key, [text]]) => [key, [text, (e) => now.current[key]?.[1](e)]])), group), [names, group]);
};

// listed is what the help shows: [group, [[key, text]]].
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
// What drives a browser may send the character apart from its key: it is not to
// land in the field that the key led to.
addEventListener("keypress", (e) => { if (taken) e.preventDefault(); }, true);
