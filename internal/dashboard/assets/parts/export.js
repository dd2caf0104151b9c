// Exports a list as a file, page by page, with progress and cancel.
import { html, useEffect, useState } from "../lib/dom.js";
import { csv } from "../lib/csv.js";
import { save } from "../lib/save.js";
import { Dialog, openDialog } from "./dialog.js";
import { ErrorBox } from "./errorbox.js";
import { Menu } from "./menu.js";
import { toast } from "./toast.js";

const most = 10_000; // rows in a file

const formats = {
  CSV: { type: "text/csv", write: (items, { fields, rowOf }) => csv(fields, rowOf ? items.map(rowOf) : items) },
  JSON: { type: "application/json", write: (items) => JSON.stringify(items, null, 2) },
};

// ExportMenu: list is {name, keyOf(item), fields, rowOf(item), page(next, signal)}. name is the plural
// of an item, such as tasks; page returns {items, next, total}, total if known.
export const ExportMenu = ({ list }) => html`<${Menu} label="Export" items=${Object.keys(formats).map((format) => ({
  text: format, act: () => openDialog((close) => html`<${Export} list=${list} format=${format} onClose=${close} />`),
}))}>Export</${Menu}>`;

const number = (n) => n.toLocaleString("en");

const Export = ({ list, format, onClose }) => {
  const [seen, setSeen] = useState({ rows: 0, total: 0 }), [error, setError] = useState(null);
  useEffect(() => {
    const over = new AbortController();
    (async () => {
      try {
        const { items, more } = await collect(list, over.signal, setSeen);
        const { type, write } = formats[format];
        save(new Blob([write(items, list)], { type }), `${list.name}.${format.toLowerCase()}`);
        toast(more ? `The first ${number(items.length)} ${list.name} were exported, the maximum of a file.` : `${number(items.length)} ${items.length === 1 ? `${list.name.slice(0, -1)} was` : `${list.name} were`} exported.`);
        onClose();
      } catch (cause) {
        if (!over.signal.aborted) setError(cause);
      }
    })();
    return () => over.abort();
  }, []);
  return html`<${Dialog} title=${`Export as ${format}`} onClose=${onClose} foot=${html`<button type="button" data-first="" onClick=${onClose}>Cancel</button>`}>
    <${ErrorBox} error=${error} title="The export failed" />
    ${!error && html`<p>${number(seen.rows)}${seen.total ? ` of ${number(seen.total)}` : ""} ${list.name}</p><progress aria-label=${`${list.name} read`} max=${seen.total || undefined} value=${seen.total ? seen.rows : undefined}></progress>`}
  </${Dialog}>`;
};

// collect reads all pages, up to most rows.
const collect = async (list, signal, tell) => {
  const found = new Map();
  let next = "";
  do {
    const page = await list.page(next, signal);
    signal.throwIfAborted();
    for (const item of page.items) found.set(list.keyOf(item), item);
    next = page.next;
    tell({ rows: Math.min(found.size, most), total: page.total && Math.min(Math.max(page.total, found.size), most) });
  } while (next && found.size < most);
  return { items: [...found.values()].slice(0, most), more: found.size > most || Boolean(next) };
};
