// Short notes. They are seen at once; what a screen reader is told of them, and
// of all else here, is one sentence at most every five seconds.
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

// say tells a screen reader. What comes too soon waits; of several that wait
// the last is said.
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

// Said is the one element with role="status". It is empty at first: only what
// comes into it later is read out.
const Said = () => {
  const text = useStore(said);
  const [now, setNow] = useState("");
  useEffect(() => setNow(text), [text]);
  return html`<div role="status" class="unseen">${now}</div>`;
};
