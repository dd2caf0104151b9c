// A table with only the visible rows in the document. Rows have a fixed height and are
// contained, so that a change in one moves nothing else.
import { html, cx, useEffect, useLayoutEffect, useMedia, useRef, useState } from "../lib/dom.js";

const spare = 8; // extra rows at both edges

// Table: columns [{name, label, width}], items, keyOf(item), row(item, index) → one child
// per column. height and phoneHeight are row heights in px. cursor is the index of the
// row that keys act on, or -1. onEnd is called near the last row.
// The head of a column with sort is a button that calls onSort(next) with the next order;
// sort is the present order: a key, -key, or "".
// classOf(item) returns more classes of a row; open(item) is called for a click on the row
// itself.
export const Table = ({ label, columns, items, keyOf, row, name, height = 40, phoneHeight = 76, cursor = -1, onEnd, classOf, open, sort = "", onSort }) => {
  const box = useRef(null);
  const each = useMedia("(max-width: 640px)") ? phoneHeight : height;
  const [from, to] = useWindow(box, items.length, each);
  useEffect(() => { if (to >= items.length - spare) onEnd?.(); }, [to, items.length, !onEnd]);
  useLayoutEffect(() => { if (cursor >= 0) reveal(box.current, cursor, each); }, [cursor, each]);
  useEffect(() => { if (cursor >= 0) step(box.current, cursor); }, [cursor]);
  return html`<div class=${cx("table", `table-${name}`)} role="table" style=${{ "--columns": columns.map((c) => c.width).join(" ") }} aria-label=${label} aria-rowcount=${items.length + 1}>
    <div role="rowgroup" class="table-head"><div role="row" aria-rowindex="1">${columns.map((c) => html`<div key=${c.name} role="columnheader" class=${`col-${c.name}`} aria-sort=${c.sort && sortedBy(c.sort, sort)}>${c.sort ? html`<button type="button" class="plain" onClick=${() => onSort(nextSort(c, sort))}>${c.label}</button>` : c.label}</div>`)}</div></div>
    <div role="rowgroup" class="table-body" ref=${box} style=${{ height: `${items.length * each}px` }}>
      ${items.slice(from, to).map((item, i) => html`<div key=${keyOf(item)} role="row" aria-rowindex=${from + i + 2} tabindex="-1" onClick=${open && ((e) => { if (isPlain(e)) open(item); })} class=${cx("row", open && "row-opens", cursor === from + i && "row-cursor", classOf?.(item))}
        style=${{ height: `${each}px`, transform: `translateY(${(from + i) * each}px)` }}>
        ${row(item, from + i).map((cell, c) => html`<div key=${columns[c].name} role="cell" class=${`col-${columns[c].name}`}>${cell}</div>`)}
      </div>`)}
    </div>
  </div>`;
};

const sortedBy = (key, sort) => ({ [key]: "ascending", [`-${key}`]: "descending" }[sort] ?? "none");

// nextSort: first the usual direction, then the opposite, then none.
const nextSort = ({ sort: key, ascends }, sort) => {
  const first = ascends ? key : `-${key}`, second = ascends ? `-${key}` : key;
  return { [first]: second, [second]: "" }[sort] ?? first;
};

// isPlain reports a click on the row itself, without a text selection.
const isPlain = (e) => e.button === 0 && !e.metaKey && !e.ctrlKey && !e.shiftKey && !e.altKey && !e.target.closest("a, button, input, label, select, summary") && !String(getSelection());

// useWindow is the range of visible rows.
const useWindow = (box, count, each) => {
  const [range, setRange] = useState([0, 40]);
  useEffect(() => {
    let asked = 0;
    const look = () => {
      asked = 0;
      if (!box.current) return;
      const top = -box.current.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(top / each) - spare);
      const to = Math.max(from, Math.ceil((top + innerHeight) / each) + spare);
      setRange((was) => (was[0] === from && was[1] === to ? was : [from, to]));
    };
    const soon = () => { asked ||= requestAnimationFrame(look); };
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => { cancelAnimationFrame(asked); removeEventListener("scroll", soon); removeEventListener("resize", soon); };
  }, [count, each]);
  return [Math.min(range[0], count), Math.min(range[1], count)];
};

// reveal scrolls a row into view, below sticky content.
const reveal = (body, index, each) => {
  const top = body.getBoundingClientRect().top + index * each;
  const head = body.previousElementSibling, from = parseFloat(getComputedStyle(head).top) + head.offsetHeight;
  if (top < from) scrollBy(0, top - from);
  else if (top + each > innerHeight - 16) scrollBy(0, top + each - innerHeight + 16);
};

// step moves the focus to the cursor's row once it exists, so that a screen reader reads
// that row.
const step = (body, index) => requestAnimationFrame(() => requestAnimationFrame(() => {
  body?.querySelector(`[aria-rowindex="${index + 2}"]`)?.focus({ preventScroll: true });
}));
