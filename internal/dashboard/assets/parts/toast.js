// Short notes. They appear at once; a screen reader gets at most one sentence every
// five seconds, of these and of all else.
import { html, store, useStore, useEffect, useState, cx } from "../lib/dom.js";

const stays = 6000, between = 5000, most = 4; // ms, ms, notes

const notes = store([]);
let number = 0;

// toast shows a note; kind is info or bad.
export const toast = (text, kind = "info") => {
  const note = { id: ++number, text, kind };
  notes.set([...notes.get(), note].slice(-most));
  setTimeout(() => notes.set(notes.get().filter((n) => n !== note)), stays);
  say(text);
};

const said = store("");
let lastSaid = -between, waiting = "", timer = 0;

// say announces a text to a screen reader. If it comes too soon, it waits; only the
// last of several is announced.
export const say = (text) => {
  waiting = text;
  clearTimeout(timer);
  timer = setTimeout(() => {
    lastSaid = performance.now();
    said.set(waiting);
  }, Math.max(0, lastSaid + between - performance.now()));
};

export const Toasts = () => {
  const all = useStore(notes);
  return html`${all.length > 0 && html`<aside class="toasts" aria-label="Notes">${all.map((n) => html`<div key=${n.id} class=${cx("toast", n.kind === "bad" && "toast-bad")}>${n.text}</div>`)}</aside>`}
    <${Said} />`;
};

// Said is the element with role="status". It starts empty: only later content is
// announced.
const Said = () => {
  const text = useStore(said);
  const [now, setNow] = useState("");
  useEffect(() => setNow(text), [text]);
  return html`<div role="status" class="unseen">${now}</div>`;
};
