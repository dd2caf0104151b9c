// Markdown of an answer as elements: headings, lists, quotes, tables, code with a copy
// button, emphasis and links. Nothing is interpreted as HTML, and unknown syntax stays
// as it was written.
import { html, useMemo } from "../lib/dom.js";
import { Copy } from "./copy.js";

const mostChars = 200_000, mostLine = 5000; // longer text is shown unformatted

export const Markdown = ({ text }) => {
  const blocks = useMemo(() => (text.length > mostChars ? [{ kind: "code", text }] : parse(text)), [text]);
  return html`<div class="markdown" dir="auto">${blocks.map((b, i) => html`<${Block} key=${i} block=${b} />`)}</div>`;
};

const Block = ({ block: b }) => {
  switch (b.kind) {
    case "code": return html`<div class="code-block"><pre><code>${b.text}</code></pre><${Copy} text=${b.text} label="Copy the code" /></div>`;
    case "heading": return html`<p class=${`md-heading md-heading-${b.level}`} role="heading" aria-level=${b.level + 2}>${inline(b.text)}</p>`;
    case "list": return b.ordered ? html`<ol start=${b.start}>${b.items.map(item)}</ol>` : html`<ul>${b.items.map(item)}</ul>`;
    case "quote": return html`<blockquote>${b.blocks.map((one, i) => html`<${Block} key=${i} block=${one} />`)}</blockquote>`;
    case "rule": return html`<hr />`;
    case "table": return html`<div class="md-table" tabindex="0" role="group" aria-label="Table"><table>
      <thead><tr>${b.head.map((c) => html`<th scope="col">${inline(c)}</th>`)}</tr></thead>
      <tbody>${b.rows.map((row) => html`<tr>${row.map((c) => html`<td>${inline(c)}</td>`)}</tr>`)}</tbody></table></div>`;
    default: return html`<p>${lines(b.text)}</p>`;
  }
};

const item = (one, i) => html`<li key=${i}>${one.blocks.map((b, n) => (b.kind === "text" && n === 0 ? lines(b.text) : html`<${Block} key=${n} block=${b} />`))}</li>`;

const lines = (text) => text.split("\n").map((line, i) => html`${i > 0 && html`<br />`}${inline(line)}`);

const FENCE = /^ {0,3}(`{3,}|~{3,})/, ITEM = /^( *)([-*+]|\d{1,9}[.)]) +(.*)$/, RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const isTable = (all, i) => all[i].includes("|") && /^ *\|?( *:?-+:? *\|)+( *:?-+:? *)?$/.test(all[i + 1] ?? "");
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((c) => c.trim());

// parse splits a text into blocks. depth limits nested quotes and lists.
export const parse = (text, depth = 0) => {
  const all = text.replaceAll("\r\n", "\n").split("\n"), blocks = [];
  for (let i = 0; i < all.length;) {
    const line = all[i];
    const fence = FENCE.exec(line), heading = /^ {0,3}(#{1,6}) +(.+?) *#*$/.exec(line), first = ITEM.exec(line);
    if (!line.trim()) { i++; continue; }
    if (fence) {
      const end = all.findIndex((l, n) => n > i && l.trim().startsWith(fence[1]) && !l.trim().slice(fence[1].length).replaceAll(fence[1][0], "").trim());
      const stop = end < 0 ? all.length : end;
      blocks.push({ kind: "code", text: all.slice(i + 1, stop).join("\n") });
      i = stop + 1;
    } else if (heading) {
      blocks.push({ kind: "heading", level: heading[1].length, text: heading[2] });
      i++;
    } else if (RULE.test(line)) {
      blocks.push({ kind: "rule" });
      i++;
    } else if (/^ {0,3}>/.test(line) && depth < 5) {
      const from = i;
      while (i < all.length && /^ {0,3}>/.test(all[i])) i++;
      blocks.push({ kind: "quote", blocks: parse(all.slice(from, i).map((l) => l.replace(/^ {0,3}> ?/, "")).join("\n"), depth + 1) });
    } else if (first && depth < 5) {
      i = list(all, i, first, blocks, depth);
    } else if (isTable(all, i)) {
      const head = cells(line), rows = [];
      for (i += 2; i < all.length && all[i].includes("|"); i++) rows.push(cells(all[i]).slice(0, head.length));
      blocks.push({ kind: "table", head, rows });
    } else {
      const from = i++;
      while (i < all.length && all[i].trim() && !FENCE.test(all[i]) && !/^ {0,3}(#{1,6} |>)/.test(all[i]) && !ITEM.test(all[i]) && !RULE.test(all[i]) && !isTable(all, i)) i++;
      blocks.push({ kind: "text", text: all.slice(from, i).map((l) => l.trim()).join("\n") });
    }
  }
  return blocks;
};

// list reads the items from line i, and returns the next line.
const list = (all, i, first, blocks, depth) => {
  const indent = first[1].length, ordered = /\d/.test(first[2]), items = [];
  while (i < all.length) {
    const found = ITEM.exec(all[i]);
    if (!found || found[1].length !== indent || /\d/.test(found[2]) !== ordered || RULE.test(all[i])) break;
    const inner = [found[3]], width = indent + found[2].length + 1;
    for (i++; i < all.length; i++) {
      const deeper = all[i].search(/\S/) >= Math.min(width, indent + 2);
      const later = !all[i].trim() && all.slice(i).find((l) => l.trim())?.search(/\S/) >= Math.min(width, indent + 2);
      if (!deeper && !later) break;
      inner.push(all[i].slice(Math.min(width, Math.max(0, all[i].search(/\S/)))));
    }
    items.push({ blocks: parse(inner.join("\n"), depth + 1) });
    const next = all.findIndex((l, n) => n >= i && l.trim());
    if (next > i && ITEM.test(all[next])) i = next;
  }
  blocks.push({ kind: "list", ordered, start: ordered ? parseInt(first[2], 10) : undefined, items });
  return i;
};

const INLINE = /(`+)([^`]|[^`].*?[^`])\1(?!`)|\*\*(?=\S)(.+?\S|\S)\*\*|(?<![*\w])\*(?=[^\s*])([^*]*?[^\s*])\*(?!\*)|(?<!\w)_(?=[^\s_])([^_]*?[^\s_])_(?!\w)|\[([^\][]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>()"'`]*[^\s<>()"'`.,:;!?])/g;

// inline returns the text and elements of one line.
export const inline = (text) => {
  if (text.length > mostLine) return [text];
  const parts = [];
  let from = 0;
  for (const m of text.matchAll(INLINE)) {
    if (m.index > from) parts.push(text.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[1]) parts.push(html`<code>${m[2].trim() || m[2]}</code>`);
    else if (m[3]) parts.push(html`<strong>${inline(m[3])}</strong>`);
    else if (m[4] ?? m[5]) parts.push(html`<em>${inline(m[4] ?? m[5])}</em>`);
    else if (m[6]) parts.push(safe(m[7]) ? link(m[7], inline(m[6])) : m[0]);
    else parts.push(link(m[8], m[8]));
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
};

// safe reports whether a link may lead to an address.
export const safe = (to) => /^(?:https?:\/\/|mailto:)/i.test(to);
const link = (to, text) => html`<a href=${to} target="_blank" rel="noopener noreferrer">${text}</a>`;
