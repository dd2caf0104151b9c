// A table that can be sorted and filtered, for agents and schedules. All rows are in the
// document; parts/table.js is for thousands of rows.
import { cx, html, useId } from "../lib/dom.js";

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

// sorted orders items by a column: "name", or "-name" for descending. Items without a value
// are last; equal ones are ordered by the first column.
export const sorted = (items, columns, sort) => {
  const falling = sort.startsWith("-"), column = columns.find((c) => c.by && c.name === sort.replace(/^-/, "")) ?? columns.find((c) => c.by);
  const first = columns.find((c) => c.by);
  const value = (c, item) => c.by(item) ?? "";
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b)));
  return items.toSorted((a, b) => {
    const x = value(column, a), y = value(column, b);
    if (x === "" || y === "") { if (x !== y) return x === "" ? 1 : -1; } else {
      const order = compare(x, y);
      if (order) return falling ? -order : order;
    }
    return compare(value(first, a), value(first, b));
  });
};

// filtered returns the items whose textOf contains all words.
export const filtered = (items, words, textOf) => {
  const all = words.toLowerCase().split(/\s+/).filter(Boolean);
  return all.length === 0 ? items : items.filter((item) => { const text = textOf(item).toLowerCase(); return all.every((word) => text.includes(word)); });
};

export const Filter = ({ label, value, set }) => html`<input type="search" class="filter" aria-label=${label} placeholder="Filter" value=${value} onInput=${(e) => set(e.target.value)} />`;

// Listing: columns [{name, label, cell(item), by(item), falling}]. by makes a column
// sortable; falling sorts it descending first. rowOf(item) returns attributes of a row.
export const Listing = ({ label, name, columns, items, keyOf, sort, onSort, rowOf = () => ({}) }) => {
  const at = sort.replace(/^-/, ""), falling = sort.startsWith("-"), hint = useId();
  return html`<div class="card listing-box"><table role="table" class=${cx("listing", `listing-${name}`)} aria-label=${label}>
    <thead role="rowgroup"><tr role="row">${columns.map((c) => html`<th key=${c.name} role="columnheader" scope="col" class=${`col-${c.name}`} aria-sort=${c.by && at === c.name ? (falling ? "descending" : "ascending") : undefined}>
      ${c.by ? html`<button type="button" class="sort" aria-describedby=${hint} onClick=${() => onSort((at === c.name ? falling : !c.falling) ? c.name : `-${c.name}`)}>${c.label}</button>` : c.label}</th>`)}</tr></thead>
    <tbody role="rowgroup">${items.map((item) => { const { class: more, ...rest } = rowOf(item); return html`<tr key=${keyOf(item)} role="row" class=${more} ...${rest}>${columns.map((c) => html`<td key=${c.name} role="cell" class=${`col-${c.name}`}>${c.cell(item)}</td>`)}</tr>`; })}</tbody>
  </table><span id=${hint} hidden>sorts the list</span></div>`;
};
