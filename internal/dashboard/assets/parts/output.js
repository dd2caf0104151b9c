// Output shows what a task prints: the newest lines of it, with their colours, followed
// until a person scrolls up or pauses. The lines are put into the document by
// hand: a list of two thousand that grows five times a second is no work for a
// comparison.
import { cx, html, useEffect, useRef, useState } from "../lib/dom.js";
import { get, stream } from "../lib/api.js";
import { save } from "../lib/save.js";
import { clockOf } from "../lib/time.js";
import { Lines, timed } from "./lines.js";

const tick = 200; // ms between two looks of the document
const nearEnd = 24; // px from the end that still count as the end

export const Output = ({ id, state, failure }) => {
  const box = useRef(null), screen = useRef(null);
  const [look, setLook] = useState({ wrap: true, times: false });
  const toggle = (what) => setLook((was) => ({ ...was, [what]: !was[what] }));
  const [view, setView] = useState({ follow: true, unseen: 0, left: 0, any: false, done: false, broken: null, failure: null });
  useEffect(() => {
    const s = open(id, box.current, setView, failure);
    screen.current = s;
    return s.close;
  }, [id]);
  useEffect(() => screen.current?.fails(failure), [id, failure]);
  const follow = (on) => screen.current?.follow(on);
  return html`
    <section class="card output" aria-labelledby="output-head">
      <header class="card-head">
        <h2 id="output-head">Output</h2>
        <span class="output-state quiet">${stateText(state, view)}</span>
        <span class="output-tools">
          ${!view.done && view.any && html`<button type="button" onClick=${() => follow(!view.follow)}>${view.follow ? "Pause" : view.unseen ? `Follow (${view.unseen} new)` : "Follow"}</button>`}
          ${view.any && html`
            <button type="button" aria-pressed=${look.wrap} onClick=${() => toggle("wrap")}>Wrap</button>
            <button type="button" aria-pressed=${look.times} onClick=${() => toggle("times")}>Times</button>
            <${Download} id=${id} />`}
        </span>
      </header>
      ${view.done && view.failure && html`
        <p class="output-failure"><strong>Most likely why:</strong> <code>${view.failure.text}</code>
          <button type="button" class="plain" onClick=${() => screen.current?.show(view.failure.n)}>Show it</button></p>`}
      ${view.left > 0 && html`<p class="output-left quiet">${view.left.toLocaleString()} earlier lines are left out here; the download has what is kept.</p>`}
      ${!view.any && html`<p class="output-none quiet">${noneText(state, view)}</p>`}
      <div class=${cx("output-box", !view.any && "is-empty", !look.wrap && "is-unwrapped", look.times && "has-times")} ref=${box} tabindex="0" role="log" aria-live="off" aria-label="What the task printed"></div>
    </section>`;
};

const stateText = (state, view) => {
  if (view.broken) return view.broken;
  if (view.done) return "ended";
  if (state === "pending") return "not started";
  return view.follow ? "following" : view.unseen ? `paused, ${view.unseen} new lines` : "paused";
};

const noneText = (state, view) => {
  if (view.done) return "It printed nothing.";
  return state === "pending" ? "Not started yet. Its output will appear here." : "No output yet.";
};

// open follows the output of a task into an element. That of a task that had failed
// opens at failure, the line that says why, any other at its end.
const open = (id, box, tell, failure) => {
  const s = { failure, lines: new Lines(), shown: 0, following: true, done: false, next: 0, broken: null, box, open: null, top: 0 };
  let opened = false; // once: after that a person scrolls
  let timer = 0, stop = () => {};
  const soon = () => { timer ||= setTimeout(() => { timer = 0; draw(s); openAtFailure(); tell(viewOf(s)); }, tick); };
  const openAtFailure = () => {
    if (opened || !s.done) return;
    opened = true;
    const found = failure && s.lines.find(failure);
    if (!found) return;
    const one = mark(s, found.n);
    if (one) box.scrollTop = one.offsetTop - box.offsetTop - box.clientHeight / 2; // the page itself stays where it is
    s.top = box.scrollTop;
  };
  const take = ({ event, data }) => {
    if (event !== "output") return true;
    if (data.truncated) s.lines.gap();
    for (const [text, at] of timed(data)) s.lines.push(text, at);
    s.next = data.next;
    s.done = Boolean(data.done);
    soon();
    return !s.done;
  };
  const start = () => {
    stop();
    stop = () => {};
    // A tab that nobody looks at gives its connection back: a browser has few.
    if (s.done || document.hidden) return;
    stop = stream(`/api/queue/${encodeURIComponent(id)}/output?after=${s.next}`, take, (now, cause) => {
      s.broken = now === "open" || s.done ? null : now === "ended" ? cause.message : cause ? "waiting for the director" : s.broken;
      soon();
    });
  };
  const scrolled = () => {
    if (box.scrollTop === s.top) return; // the echo of our own move, which may come after a press of Pause
    s.top = box.scrollTop;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < nearEnd;
    if (atEnd !== s.following && !s.done) { s.following = atEnd; soon(); }
  };
  document.addEventListener("visibilitychange", start);
  box.addEventListener("scroll", scrolled, { passive: true });
  start();
  return {
    fails(line) { s.failure = line; tell(viewOf(s)); },
    follow(on) { s.following = on; draw(s); tell(viewOf(s)); },
    show(n) { s.following = false; draw(s, true); mark(s, n)?.scrollIntoView({ block: "center" }); tell(viewOf(s)); },
    close() {
      stop();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", start);
      box.removeEventListener("scroll", scrolled);
      box.replaceChildren();
    },
  };
};

const viewOf = (s) => ({
  follow: s.following, unseen: Math.max(0, s.lines.count - s.shown), left: s.lines.left, any: s.lines.count > 0 || s.lines.last !== "",
  done: s.done, broken: s.broken, failure: s.done ? s.lines.find(s.failure) : null,
});

// draw brings the element up to date. While it is paused nothing moves, but
// for the first screen and the end.
const draw = (s, always) => {
  if (s.lines.count > 0 || s.lines.last !== "") s.box.classList.remove("is-empty"); // what is not shown has no end to scroll to
  if (!s.following && !s.done && !always && s.shown > 0) return;
  const first = s.lines.lines[0]?.n ?? s.lines.count + 1;
  const stay = s.box.scrollHeight - s.box.scrollTop;
  while (s.box.firstChild && s.box.firstChild !== s.open && Number(s.box.firstChild.dataset.n) < first) s.box.firstChild.remove();
  s.open ??= s.box.appendChild(line({ n: 0, text: "" }));
  const fresh = document.createDocumentFragment();
  for (const one of s.lines.lines.slice(Math.max(0, s.shown + 1 - first))) fresh.append(line(one));
  s.box.insertBefore(fresh, s.open);
  s.shown = s.lines.count;
  fill(s.open, s.lines.last, s.lines.runs);
  s.open.dataset.n = s.lines.count + 1;
  s.open.hidden = s.lines.last === "";
  if (s.following) s.box.scrollTop = s.box.scrollHeight;
  else if (s.done) s.box.scrollTop = s.box.scrollHeight - stay;
  s.top = s.box.scrollTop;
};

const line = ({ n, text, runs, gap, at }) => {
  const element = document.createElement("div");
  fill(element, text, runs);
  element.dataset.n = n;
  if (at) element.dataset.at = clockOf(at);
  if (gap) element.className = "output-gap";
  return element;
};

// fill puts a text into an element, a span for each colour.
const fill = (element, text, runs = []) => {
  element.textContent = text.slice(0, runs[0]?.[0]);
  runs.forEach(([from, name], i) => {
    const part = text.slice(from, runs[i + 1]?.[0]);
    element.append(name ? Object.assign(document.createElement("span"), { className: name, textContent: part }) : part);
  });
};

const mark = (s, n) => {
  for (const old of s.box.querySelectorAll(".is-marked")) old.classList.remove("is-marked");
  const one = s.box.querySelector(`[data-n="${Number(n)}"]`);
  one?.classList.add("is-marked");
  return one;
};

const mostPages = 512; // of a download

// Download fetches all that is kept of a log, and gives it as a file.
const Download = ({ id }) => {
  const [state, setState] = useState("Download");
  const load = async () => {
    setState("Loading…");
    try {
      const parts = [];
      for (let after = 0, n = 0; n < mostPages; n++) {
        const page = await get(`/api/queue/${encodeURIComponent(id)}/output?after=${after}`);
        if (page.truncated) parts.push("\n… output is missing here …\n");
        parts.push(page.text);
        if (page.done || page.next <= after) break;
        after = page.next;
      }
      save(new Blob(parts, { type: "text/plain" }), `${id}.log`);
      setState("Download");
    } catch (cause) {
      setState(`Not loaded: ${cause.message}. Try again`);
    }
  };
  return html`<button type="button" disabled=${state === "Loading…"} onClick=${load}>${state}</button>`;
};
