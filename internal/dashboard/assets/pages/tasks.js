// Tasks: all that match a query, waiting and running ones first. The query
// stands in the address, so that it can be kept, sent and gone back to.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { useKeys } from "../lib/keys.js";
import { useMay } from "../lib/me.js";
import { kept, useKept } from "../lib/place.js";
import { go, searchPath, taskPath } from "../lib/router.js";
import { isEnded } from "../lib/board.js";
import { cancelTask, retryTask } from "../parts/cancel.js";
import { Changes } from "../parts/changes.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Sticky } from "../parts/sticky.js";
import { Table } from "../parts/table.js";
import { BulkBar } from "./tasks-bulk.js";
import { ExportMenu } from "./tasks-export.js";
import { cells, ColumnMenu, useColumns } from "./tasks-row.js";
import { useSearch } from "./tasks-search.js";

const samples = [["all", ""], ["waiting", "state:pending"], ["running", "state:working,dispatching,cancelling"], ["done", "state:completed"], ["failed today", "state:failed,timeout since:24h"], ["schedules", "source:scheduler"]];

export default ({ query }) => {
  const q = query.get("q") ?? "";
  const found = useSearch(q);
  const cancel = useMay("cancel"), retry = useMay("submit");
  const columns = useColumns();
  const [cursor, setCursor] = useState(() => kept()?.cursor ?? -1);
  const [picked, setPicked] = useState(() => kept()?.picked ?? new Map());
  const first = useRef(q); // the query that the page came with
  useEffect(() => {
    if (first.current === q) return;
    first.current = null;
    setCursor(-1);
    setPicked(new Map());
  }, [q]);
  useKept(() => ({ cursor, picked, found: found.state }));
  const tasks = found.tasks;
  const at = Math.min(cursor, tasks.length - 1), task = tasks[at];
  const toggle = (t) => {
    if (!t) return false;
    const next = new Map(picked);
    if (!next.delete(t.queue_id)) next.set(t.queue_id, t);
    setPicked(next);
    return true;
  };
  const move = (by) => { if (tasks.length === 0) return false; setCursor(Math.max(0, Math.min(tasks.length - 1, at + by))); return true; };
  useKeys({
    j: ["next row", () => move(1)], k: ["row before", () => move(-1)],
    Enter: ["open the row", () => (task ? go(taskPath(task.queue_id)) : false)],
    x: ["select the row", () => toggle(task)],
    c: ["cancel the row", () => (task && !isEnded(task.state) && cancel.ok ? (cancelTask(task), true) : false)],
    r: ["retry the row", () => (task && isEnded(task.state) && retry.ok ? (retryTask(task), true) : false)],
    Escape: ["clear the selection", () => (picked.size > 0 ? (setPicked(new Map()), true) : false)],
    w: ["why does it wait", () => (task ? go(taskPath(task.queue_id)) : false)],
  });
  return html`<div class="page-head"><h1>Tasks</h1><p class="quiet"><${Changes} hold=${found} show=${found.refresh} /> ${countText(found)}</p></div>
    <p class="chips searches">${samples.map(([name, value]) => html`<a key=${name} class=${q === value ? "chip chip-picked" : "chip"} href=${searchPath(value)} aria-current=${q === value ? "true" : undefined}>${name}</a>`)}</p>
    <p id="search-keys" class="quiet small-text">Keys: agent, state, reason, queue, source, job, session, mode, tool, by, id, since, until, older. A minus before a word leaves it out.</p>
    <${Sticky}>
      <${SearchBox} q=${q} error=${found.error} />
      <div class="list-bar"><${BulkBar} q=${q} found=${found} picked=${picked} clear=${() => setPicked(new Map())} /><div class="buttons">${tasks.length > 0 && html`<${ExportMenu} q=${q} />`}<${ColumnMenu} /></div></div>
    </${Sticky}>
    ${found.error && found.error.field !== "q" && html`<${ErrorBox} error=${found.error} title="The search did not work" retry=${found.refresh} />`}
    ${!found.busy && !found.error && tasks.length === 0 && html`<${Nothing} q=${q} />`}
    ${tasks.length > 0 && html`<div class="card" ...${found.props}><${Table} label="Tasks" name="tasks" columns=${columns} items=${tasks} keyOf=${(t) => t.queue_id} cursor=${at} onEnd=${found.more} open=${(t) => go(taskPath(t.queue_id))}
      classOf=${(t) => (picked.has(t.queue_id) ? "is-picked" : "")} row=${(t) => cells(columns, t, { picked: picked.has(t.queue_id), toggle })} height=${38} phoneHeight=${92} /></div>`}
    ${found.busy && html`<p class="quiet" aria-busy="true">Searching…</p>`}`;
};

const countText = ({ total, approximate, busy, tasks, next }) => {
  if (busy && tasks.length === 0) return "";
  const about = approximate && next; // all that there are have been fetched otherwise
  const count = approximate ? Math.max(total, tasks.length) : total;
  const n = count.toLocaleString("en");
  return about ? `more than ${n} tasks` : `${n} ${count === 1 ? "task" : "tasks"}`;
};

const wait = 250; // ms after the last letter

const SearchBox = ({ q, error }) => {
  const [text, setText] = useState(q);
  const timer = useRef(0), sent = useRef(q);
  useEffect(() => { if (q !== sent.current) { sent.current = q; setText(q); } }, [q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const send = (value) => { clearTimeout(timer.current); sent.current = value.trim(); go(searchPath(value.trim()), { replace: true }); };
  const type = (e) => {
    const value = e.target.value;
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => send(value), wait);
  };
  const wrong = error?.field === "q" ? error : null;
  return html`<form class="search" role="search" onSubmit=${(e) => { e.preventDefault(); send(text); }}>
    <label class="unseen" for="search">Search tasks</label>
    <input id="search" type="search" value=${text} onInput=${type} onKeyDown=${(e) => { if (e.key === "Escape") e.target.blur(); }} maxlength="1000" placeholder=${'agent:coder state:failed since:2h "billing"'} autocomplete="off" autocapitalize="none" spellcheck=${false}
      aria-invalid=${wrong ? "true" : undefined} aria-describedby=${wrong ? "search-note" : "search-keys"} />
    ${wrong && html`<p id="search-note" class="wrong" role="alert">${wrong.message}${wrong.hint ? ` — ${wrong.hint}` : ""}</p>`}
  </form>`;
};

const Nothing = ({ q }) => (q
  ? html`<${Empty} title="No task matches." text="The same from the command line:" command=${`signalbox search '${q.replaceAll("'", "'\\''")}'`} />`
  : html`<${Empty} title="No tasks yet." text="Press n for the first one, or from the command line:" command=${'signalbox submit "say hello"'} />`);
