// The search field for tasks. It completes keys and values: arrows move, Tab and Enter
// accept an option, Esc closes the list.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { complete, unfinished } from "../lib/complete.js";
import { current } from "../lib/live.js";
import { go } from "../lib/router.js";

const wait = 250; // ms after the last letter

let known = [], asked = null; // the keys, read once

// useSearchKeys returns the keys of queries: {key, text, values, examples}.
const useSearchKeys = () => {
  const [keys, setKeys] = useState(known);
  useEffect(() => {
    asked ??= get("/api/search/keys").then((answer) => { known = answer.keys; }, () => { asked = null; });
    asked.then(() => setKeys(known));
  }, []);
  return keys;
};

// useJobs returns the names of the schedules, read once when needed.
const useJobs = (wanted) => {
  const [jobs, setJobs] = useState(null);
  useEffect(() => {
    if (!wanted || jobs) return;
    setJobs([]);
    get("/api/schedules?limit=200").then((answer) => setJobs(answer.schedules.map((s) => s.name)), () => {});
  }, [wanted]);
  return jobs ?? [];
};

// SearchBox: pathOf returns the address of another query; tasks are the shown rows, for
// completing values.
export const SearchBox = ({ q, error, pathOf, tasks }) => {
  const [text, setText] = useState(q), [caret, setCaret] = useState(-1), [at, setAt] = useState(-1); // caret -1: the list is closed
  const timer = useRef(0), sent = useRef(q), input = useRef(null), place = useRef(-1), taken = useRef(false);
  const keys = useSearchKeys(), jobs = useJobs(caret >= 0 && /job:\S*$/.test(text.slice(0, caret)));
  useEffect(() => { if (q !== sent.current) { sent.current = q; setText(q); } }, [q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  useLayoutEffect(() => {
    if (place.current >= 0) input.current.setSelectionRange(place.current, place.current);
    place.current = -1;
    document.querySelector("#search-options [aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });
  const found = useMemo(() => (caret < 0 ? { options: [] } : complete(text, caret, keys, (key) => valuesOf(key, tasks, jobs))), [text, caret, keys, jobs]);
  const { options } = found, open = options.length > 0, on = open ? Math.min(at, options.length - 1) : -1;
  const send = (value) => {
    clearTimeout(timer.current);
    if (value.trim() === sent.current) return;
    sent.current = value.trim();
    go(pathOf({ q: value.trim() }), { replace: true });
  };
  const change = (value, where) => {
    setText(value);
    setCaret(where);
    setAt(-1);
    clearTimeout(timer.current);
    if (!unfinished(value.trim())) timer.current = setTimeout(() => send(value), wait);
  };
  const close = () => { setCaret(-1); setAt(-1); };
  const take = (option) => {
    place.current = found.from + option.text.length;
    change(text.slice(0, found.from) + option.text + text.slice(found.to), place.current);
  };
  const press = (e) => {
    taken.current = false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && open) setAt(on < 0 && step < 0 ? options.length - 1 : (on + step + options.length) % options.length);
    else if (step > 0) { setCaret(e.target.selectionStart); setAt(-1); }
    else if (e.key === "Enter" && on >= 0) take(options[on]);
    else if (e.key === "Tab" && !e.shiftKey && open && (on >= 0 || found.word)) take(options[Math.max(on, 0)]);
    else if (e.key === "Escape" && open) close();
    else {
      if (e.key === "Escape") e.target.blur();
      else if (/^(ArrowLeft|ArrowRight|Home|End)$/.test(e.key)) close();
      return;
    }
    e.preventDefault();
    taken.current = true;
  };
  const wrong = error?.field === "q" ? error : null;
  return html`<form class="search" role="search" onSubmit=${(e) => { e.preventDefault(); close(); send(text); }}>
    <label class="unseen" for="search">Search tasks</label>
    <input id="search" ref=${input} type="text" inputmode="search" enterkeyhint="search" value=${text} onInput=${(e) => change(e.target.value, e.target.selectionStart)} onKeyDown=${press} onKeyPress=${(e) => { if (taken.current) e.preventDefault(); }} onBlur=${close} maxlength="1000" placeholder=${'agent:coder state:failed since:2h "billing"'} autocomplete="off" autocapitalize="none" spellcheck=${false}
      role="combobox" aria-autocomplete="list" aria-expanded=${String(open)} aria-controls=${open ? "search-options" : undefined} aria-activedescendant=${on >= 0 ? `search-option-${on}` : undefined}
      aria-invalid=${wrong ? "true" : undefined} aria-describedby=${wrong ? "search-note" : "search-keys"} />
    ${open && html`<ul id="search-options" class="options" role="listbox" aria-label="Completions" onPointerDown=${(e) => e.preventDefault()}>${options.map((option, i) => html`<li key=${option.text} id=${`search-option-${i}`} role="option" aria-selected=${String(i === on)} onClick=${() => take(option)}><code>${option.text}</code> <span class="quiet cut" dir="auto">${option.note}</span></li>`)}</ul>`}
    ${wrong && html`<p id="search-note" class="wrong" role="alert">${wrong.message}${wrong.hint ? ` — ${wrong.hint}` : ""}</p>`}
  </form>`;
};

// KeyList lists the keys in one line.
export const KeyList = () => {
  const keys = useSearchKeys();
  return html`<p id="search-keys" class="quiet small-text">Keys: ${keys.map((k) => k.key).join(", ")}. A minus before a word excludes it.</p>`;
};

// valuesOf returns the values of a key from the board and the list, with descriptions.
const valuesOf = (key, tasks, jobs) => {
  const b = current();
  const of = (name) => tasks.map((t) => t[name]);
  const all = {
    agent: () => [...b.agents.keys()], queue: () => [...b.queues.keys(), ...[...b.agents.keys()].map((name) => `agent:${name}`)],
    job: () => [...jobs, ...of("source_job")], by: () => of("by").map((who) => who?.replace(" ", ":")), tool: () => of("tool"),
    cause: () => [...(b.health?.attention ?? []).map((a) => [a.cause, a.text]), ...tasks.map((t) => [t.cause, t.failure_line])],
  };
  return all[key]?.() ?? [];
};
