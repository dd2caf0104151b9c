// The tasks of a search as a file: page by page, with its progress, until it is
// cancelled.
import { html, useEffect, useState } from "../lib/dom.js";
import { csv } from "../lib/csv.js";
import { save } from "../lib/save.js";
import { serverNow } from "../lib/time.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Menu } from "../parts/menu.js";
import { toast } from "../parts/toast.js";
import { secondsOf } from "./tasks-row.js";
import { pageOf } from "./tasks-search.js";

const most = 10_000; // rows of a file

const fields = ["queue_id", "state", "reason", "message", "prompt_preview", "agent", "queue", "source", "source_job", "model", "priority", "attempts", "created_at", "started_at", "ended_at", "duration_seconds", "cost_usd", "tokens"];

const formats = {
  CSV: { type: "text/csv", write: (tasks) => csv(fields, tasks.map((t) => ({ ...t, duration_seconds: secondsOf(t, serverNow()) }))) },
  JSON: { type: "application/json", write: (tasks) => JSON.stringify(tasks, null, 2) },
};

export const ExportMenu = ({ q, sort }) => html`<${Menu} label="Export" items=${Object.keys(formats).map((format) => ({
  text: format, act: () => openDialog((close) => html`<${Export} q=${q} sort=${sort} format=${format} onClose=${close} />`),
}))}>Export</${Menu}>`;

const number = (n) => n.toLocaleString("en");

const Export = ({ q, sort, format, onClose }) => {
  const [seen, setSeen] = useState({ rows: 0, total: 0 }), [error, setError] = useState(null);
  useEffect(() => {
    const over = new AbortController();
    (async () => {
      try {
        const { tasks, more } = await collect(q, sort, over.signal, setSeen);
        const { type, write } = formats[format];
        save(new Blob([write(tasks)], { type }), `tasks.${format.toLowerCase()}`);
        toast(more ? `The first ${number(tasks.length)} tasks were exported; a file has no more than that.` : `${number(tasks.length)} ${tasks.length === 1 ? "task was" : "tasks were"} exported.`);
        onClose();
      } catch (cause) {
        if (!over.signal.aborted) setError(cause);
      }
    })();
    return () => over.abort();
  }, []);
  return html`<${Dialog} title=${`Export as ${format}`} onClose=${onClose} foot=${html`<button type="button" data-first="" onClick=${onClose}>Cancel</button>`}>
    <${ErrorBox} error=${error} title="The export failed" />
    ${!error && html`<p>${number(seen.rows)} of ${number(seen.total)} tasks</p><progress aria-label="Tasks read" max=${seen.total || 1} value=${seen.rows}></progress>`}
  </${Dialog}>`;
};

// collect reads all pages of a search, up to the most that a file has.
const collect = async (q, sort, signal, tell) => {
  const found = new Map();
  let next = "";
  do {
    const page = await pageOf(q, sort, next, signal);
    signal.throwIfAborted();
    for (const t of page.tasks) found.set(t.queue_id, t);
    next = page.next;
    tell({ rows: Math.min(found.size, most), total: Math.min(Math.max(page.total, found.size), most) });
  } while (next && found.size < most);
  return { tasks: [...found.values()].slice(0, most), more: found.size > most || Boolean(next) };
};
