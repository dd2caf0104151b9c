// Output shows the output of a task: the newest lines with colours. It follows the end
// until the user scrolls up or pauses. screen.js shows the lines.
import { cx, html, useEffect, useRef, useState } from "../lib/dom.js";
import { useKeys } from "../lib/keys.js";
import { taskPath } from "../lib/router.js";
import { save } from "../lib/save.js";
import { Copy } from "./copy.js";
import { ErrorBox } from "./errorbox.js";
import { useAction } from "./load.js";
import { named, nameOf } from "./lines.js";
import { mostInPlace, open, pieces } from "./screen.js";

const nothing = { follow: true, unseen: 0, left: 0, any: false, done: false };

export const Output = ({ id, state, failure }) => {
  const box = useRef(null), screen = useRef(null);
  const [look, setLook] = useState({ wrap: true, times: false, numbers: named(location.hash) !== null });
  const [whole, setWhole] = useState(false);
  const [finding, setFinding] = useState(false);
  const toggle = (what) => setLook((was) => ({ ...was, [what]: !was[what] }));
  const [view, setView] = useState(nothing);
  useEffect(() => {
    setView(nothing);
    const s = open(id, box.current, setView, { failure, whole });
    screen.current = s;
    return s.close;
  }, [id, whole]);
  useEffect(() => screen.current?.fails(failure), [id, failure]);
  useKeys({ f: ["find in the output", () => { if (!view.any) return false; setFinding(true); document.getElementById("output-find")?.focus(); }] });
  const follow = (on) => screen.current?.follow(on);
  const switched = (what, text) => html`<button type="button" aria-pressed=${look[what]} onClick=${() => toggle(what)}>${text}</button>`;
  const endFind = () => { setFinding(false); screen.current?.search(""); box.current?.focus({ preventScroll: true }); };
  return html`
    <section class="card output" aria-labelledby="output-head">
      <header class="card-head">
        <h2 id="output-head">Output</h2>
        <span class="output-state quiet">${stateText(state, view, whole)}</span>
        <span class="output-tools">
          ${!view.done && view.any && !whole && html`<button type="button" onClick=${() => follow(!view.follow)}>${view.follow ? "Pause" : view.unseen ? `Follow (${view.unseen} new)` : "Follow"}</button>`}
          ${view.any && html`
            <button type="button" aria-pressed=${finding} title="Find in the output (f)" onClick=${() => (finding ? endFind() : setFinding(true))}>Find</button>
            ${switched("wrap", "Wrap")}${switched("times", "Times")}${switched("numbers", "Lines")}
            <${Download} id=${id} whole=${whole} />`}
        </span>
      </header>
      ${finding && html`<${Find} screen=${screen.current} view=${view} end=${endFind} />`}
      ${view.done && view.failure && html`
        <p class="output-failure"><strong>Most likely cause:</strong> <code>${view.failure.text}</code>
          <button type="button" class="plain" onClick=${() => screen.current?.show(view.failure.n)}>Show it</button></p>`}
      ${view.marked && html`
        <p class="output-bar"><span>${view.marked.from === view.marked.to ? `Line ${view.marked.from}` : `Lines ${view.marked.from} to ${view.marked.to}`}</span>
          <${Copy} label="Copy link" text=${new URL(taskPath(id) + nameOf(view.marked), location.href).href} />
          <button type="button" class="small" onClick=${() => screen.current?.unmark()}>Clear</button></p>`}
      ${view.lost && html`<p class="output-bar">${`Line ${view.lost.from} is not kept here.`}</p>`}
      ${(whole || view.missing) && html`<${Whole} id=${id} view=${view} whole=${whole} setWhole=${(on) => { setFinding(false); setWhole(on); }} />`}
      ${!view.any && !view.error && html`<p class="output-none quiet">${noneText(state, view, whole)}</p>`}
      <div class=${cx("output-box", !view.any && "is-empty", !look.wrap && "is-unwrapped", look.times && "has-times", look.numbers && "has-numbers")} ref=${box} dir="ltr" tabindex="0" role="log" aria-live="off" aria-label="What the task printed"></div>
    </section>`;
};

const stateText = (state, view, whole) => {
  if (view.broken) return view.broken;
  if (whole) return view.done ? "the whole log" : "loading the whole log";
  if (view.done) return "ended";
  if (state === "pending") return "not started";
  if (state === "parked") return "parked";
  return view.follow ? "following" : view.unseen ? `paused, ${view.unseen} new lines` : "paused";
};

const noneText = (state, view, whole) => {
  if (view.done) return "It printed nothing.";
  if (whole) return "Loading…";
  return state === "pending" ? "Not started yet. Its output will appear here." : "No output yet.";
};

// Find is the search field of the output: Enter for the next match, Shift+Enter for the previous one, Esc to end.
const Find = ({ screen, view, end }) => {
  const field = useRef(null);
  const [text, setText] = useState("");
  useEffect(() => { field.current.focus(); }, []);
  const key = (e) => {
    if (e.key !== "Enter" && e.key !== "Escape") return;
    e.preventDefault();
    e.stopPropagation();
    if (e.key === "Escape") end();
    else screen?.step(e.shiftKey ? -1 : 1);
  };
  return html`
    <div class="output-bar" role="search" aria-label="In the output">
      <input id="output-find" type="search" ref=${field} aria-label="Find in the output" placeholder="Find in the output" spellcheck=${false} maxlength="1000" value=${text}
        onInput=${(e) => { setText(e.target.value); screen?.search(e.target.value); }} onKeyDown=${key} />
      <span class="quiet" role="status">${!text ? "" : view.hits === 0 ? "no match" : view.hit ? `${view.hit} of ${view.hits}` : `${view.hits} ${view.hits === 1 ? "line" : "lines"}`}</span>
      <button type="button" class="small" disabled=${!view.hits} onClick=${() => screen?.step(-1)}>Previous</button>
      <button type="button" class="small" disabled=${!view.hits} onClick=${() => screen?.step(1)}>Next</button>
      <button type="button" class="small" onClick=${end}>Close</button>
    </div>`;
};

// Whole is shown if the agent has more of the log.
const Whole = ({ id, view, whole, setWhole }) => html`
  <div class="output-bar output-left">
    <span class="quiet">${whole ? "The log of the last attempt, from its agent." : view.left > 0 ? `${view.left.toLocaleString()} earlier lines are not shown here.` : "The beginning is not kept here."}${whole && view.left > 0 && ` Its first ${view.left.toLocaleString()} lines are left out.`}</span>
    ${whole ? html`<button type="button" class="small" onClick=${() => setWhole(false)}>Show the end</button>`
      : view.size <= mostInPlace && html`<button type="button" class="small" onClick=${() => setWhole(true)}>Show the whole log</button>`}
    ${!whole && html`<${Download} id=${id} whole=${true} small=${true} />`}
    <${ErrorBox} error=${view.error} title="The whole log could not be loaded" />
  </div>`;

// Download fetches a log in pieces, what the director keeps or the whole log from the agent,
// and saves it as a file.
const Download = ({ id, whole, small }) => {
  const [load, busy, error] = useAction(async () => {
    const parts = [];
    for await (const piece of pieces(id, whole)) {
      if (piece.truncated) parts.push("\n… output is missing here …\n");
      parts.push(piece.text);
    }
    save(new Blob(parts, { type: "text/plain" }), `${id}.log`);
  });
  return html`<button type="button" class=${cx(small && "small")} disabled=${busy} onClick=${load}>${busy ? "Loading…" : small ? "Download the whole log" : "Download"}</button>
    ${error && html`<${ErrorBox} error=${error} title="The log could not be loaded" />`}`;
};
