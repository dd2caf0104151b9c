// Tasks: all that match a query, waiting and running ones first. Query, order and grouping
// are in the address, for bookmarks, links and history.
import { html, cx, useEffect, useMemo, useRef, useState, useStore } from "../lib/dom.js";
import { fold } from "../lib/fold.js";
import { useKeys } from "../lib/keys.js";
import { useMay } from "../lib/me.js";
import { kept, useKept } from "../lib/place.js";
import { grouped } from "../lib/prefs.js";
import { go, searchPath, taskPath } from "../lib/router.js";
import { isEnded } from "../lib/board.js";
import { cancelTask, retryTask } from "../parts/cancel.js";
import { Changes } from "../parts/changes.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Sticky } from "../parts/sticky.js";
import { Table } from "../parts/table.js";
import { KeyList, SearchBox } from "./tasks-box.js";
import { BulkBar } from "./tasks-bulk.js";
import { ExportTasks } from "./tasks-export.js";
import { groupCells, retryAll } from "./tasks-group.js";
import { cells, ColumnMenu, useColumns, useHideText } from "./tasks-row.js";
import { useSearch } from "./tasks-search.js";
import { SortMenu, SortNote } from "./tasks-sort.js";
import { Views } from "./tasks-views.js";

export default ({ query }) => {
  const q = query.get("q") ?? "", sort = query.get("sort") ?? "", hide = query.get("hide"), group = query.get("group");
  const pathOf = ({ q: to = q, ...changes }) => searchPath(to, { sort, group, hide, ...changes });
  const found = useSearch(q, sort);
  const cancel = useMay("cancel"), retry = useMay("submit");
  const columns = useColumns(), hideText = useHideText();
  const groups = useStore(grouped), folds = (group ?? (groups === "on" ? "cause" : "none")) === "cause";
  const [cursor, setCursor] = useState(() => kept()?.cursor ?? -1);
  const [picked, setPicked] = useState(() => kept()?.picked ?? new Map());
  const [unfolded, setUnfolded] = useState(() => kept()?.unfolded ?? new Set()); // causes
  const first = useRef(q + sort); // the initial query and order
  useEffect(() => {
    if (first.current === q + sort) return;
    first.current = null;
    setCursor(-1);
    setPicked(new Map());
  }, [q, sort]);
  useKept(() => ({ cursor, picked, unfolded, found: found.state }));
  const tasks = found.tasks;
  const rows = useMemo(() => (folds ? fold(tasks, unfolded) : tasks), [folds, tasks, unfolded]);
  const at = Math.min(cursor, rows.length - 1), row = rows[at], task = row?.queue_id ? row : undefined;
  // toggle selects a task or a whole group, or deselects a fully selected one.
  const toggle = (entry) => {
    if (!entry) return false;
    const all = entry.tasks ?? [entry], next = new Map(picked);
    const off = all.every((t) => next.delete(t.queue_id));
    if (!off) for (const t of all) next.set(t.queue_id, t);
    setPicked(next);
    return true;
  };
  const unfold = ({ cause }) => setUnfolded((was) => { const next = new Set(was); if (!next.delete(cause)) next.add(cause); return next; });
  const openRow = (entry) => (entry.tasks ? unfold(entry) : go(taskPath(entry.queue_id)));
  const move = (by) => { if (rows.length === 0) return false; setCursor(Math.max(0, Math.min(rows.length - 1, at + by))); return true; };
  useKeys({
    j: ["next row", () => move(1)], k: ["row before", () => move(-1)],
    Enter: ["open the row", () => (row ? openRow(row) : false)],
    x: ["select the row", () => toggle(row)],
    c: ["cancel the row", () => (task && !isEnded(task.state) && cancel.ok ? (cancelTask(task), true) : false)],
    r: ["retry the row", () => (row && (row.tasks || isEnded(task.state)) && retry.ok ? ((row.tasks ? retryAll(row) : retryTask(task)), true) : false)],
    Escape: ["clear the selection", () => (picked.size > 0 ? (setPicked(new Map()), true) : false)],
    w: ["why does it wait", () => (task ? go(taskPath(task.queue_id)) : false)],
  });
  const switchGroups = () => { grouped.set(folds ? "off" : "on"); go(pathOf({ group: folds ? "none" : "cause" }), { replace: true }); };
  const cellsOf = (entry) => (entry.tasks
    ? groupCells(columns, entry, { open: unfolded.has(entry.cause), toggle: () => unfold(entry), picked, pick: () => toggle(entry) })
    : cells(columns, entry, { picked: picked.has(entry.queue_id), toggle }));
  return html`<div class="page-head"><h1>Tasks</h1><p class="quiet"><${Changes} hold=${found} show=${found.refresh} /> ${countText(found)}</p></div>
    <${Views} sort=${sort} shown=${{ q, sort, group: folds ? "cause" : "none", hide: hideText }} />
    <${KeyList} />
    <${Sticky}>
      <${SearchBox} q=${q} error=${found.error} pathOf=${pathOf} tasks=${tasks} />
      <div class="list-bar"><${BulkBar} q=${q} found=${found} picked=${picked} clear=${() => setPicked(new Map())} />
        <div class="buttons"><button type="button" aria-pressed=${String(folds)} onClick=${switchGroups}>Group failures</button><${SortMenu} sort=${sort} pathOf=${pathOf} />${tasks.length > 0 && html`<${ExportTasks} q=${q} sort=${sort} />`}<${ColumnMenu} asked=${hide} pathOf=${pathOf} /></div></div>
    </${Sticky}>
    <${SortNote} sort=${sort} found=${found} />
    ${found.error && found.error.field !== "q" && html`<${ErrorBox} error=${found.error} title="The search failed" retry=${found.refresh} />`}
    ${!found.busy && !found.error && tasks.length === 0 && html`<${Nothing} q=${q} />`}
    ${tasks.length > 0 && html`<div class="card" ...${found.props}><${Table} label="Tasks" name="tasks" columns=${columns} items=${rows} keyOf=${(t) => t.queue_id ?? t.key} cursor=${at} onEnd=${found.more} open=${openRow}
      sort=${sort} onSort=${(next) => go(pathOf({ sort: next }))}
      classOf=${(t) => (t.tasks ? "is-group" : cx(picked.has(t.queue_id) && "is-picked", folds && unfolded.has(t.cause) && "in-group"))} row=${cellsOf} height=${38} phoneHeight=${92} /></div>`}
    ${found.busy && html`<p class="quiet" aria-busy="true">Searching…</p>`}`;
};

const countText = ({ total, approximate, busy, tasks, next }) => {
  if (busy && tasks.length === 0) return "";
  const about = approximate && next; // without next, all have been fetched
  const count = approximate ? Math.max(total, tasks.length) : total;
  const n = count.toLocaleString("en");
  return about ? `more than ${n} tasks` : `${n} ${count === 1 ? "task" : "tasks"}`;
};

const Nothing = ({ q }) => (q
  ? html`<${Empty} title="No task matches." text="The same from the command line:" command=${`signalbox search '${q.replaceAll("'", "'\\''")}'`} />`
  : html`<${Empty} title="No tasks yet." text="Press n for the first one, or from the command line:" command=${'signalbox submit "say hello"'} />`);
