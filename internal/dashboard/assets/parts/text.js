import { html, useMemo, useState } from "../lib/dom.js";

const mostLines = 20, mostChars = 4000; // shown while it is folded

// Text shows a text unformatted: lines are kept and wrapped, and a long text is
// folded.
export const Text = ({ text, lines = mostLines, className = "" }) => {
  const [open, setOpen] = useState(false);
  const { short, count } = useMemo(() => fold(text ?? "", lines), [text, lines]);
  if (short === null) return html`<pre class="text ${className}" dir="auto">${text}</pre>`;
  return html`
    <pre class="text ${className}" dir="auto">${open ? text : short}</pre>
    <button type="button" class="plain" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
      ${open ? "Fold it" : `Show all of it (${count})`}</button>`;
};

const fold = (text, lines) => {
  let end = 0, n = 0;
  for (; n < lines; n++) {
    const at = text.indexOf("\n", end);
    if (at < 0) { end = text.length; break; }
    end = at + 1;
  }
  end = Math.min(end, mostChars);
  if (end >= text.length) return { short: null, count: "" };
  const all = text.split("\n").length;
  const count = all > lines ? `${all.toLocaleString()} lines` : `${text.length.toLocaleString()} characters`;
  // Do not split a surrogate pair.
  if (/[\ud800-\udbff]/.test(text[end - 1])) end--;
  return { short: text.slice(0, end).replace(/\n$/, "") + "\n…", count };
};
