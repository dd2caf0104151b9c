// A button with a menu. Arrow keys, Home and End move, Esc closes.
import { html, cx, useState, useEffect, useLayoutEffect, useRef, useId } from "../lib/dom.js";
import { Icon } from "./icon.js";

// items: {text, act, off (why not), danger, checked} or null. The button is named by
// its children, else by label.
export const Menu = ({ label, items, children, name }) => {
  const [open, setOpen] = useState(false);
  const box = useRef(null), button = useRef(null), id = useId();
  useLayoutEffect(() => { if (open) keepInSight(box.current.querySelector("ul")); }, [open]);
  useEffect(() => {
    if (!open) return undefined;
    entries(box.current)[0]?.focus();
    const away = (e) => { if (!box.current?.contains(e.target)) setOpen(false); };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const close = () => { setOpen(false); button.current?.focus(); };
  const keys = (e) => {
    if (!open) return;
    const all = entries(box.current), at = all.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[e.key];
    if (to !== undefined) { e.preventDefault(); all[to].focus(); }
    if (e.key === "Escape") { e.stopPropagation(); close(); }
    if (e.key === "Tab") setOpen(false);
  };
  const pick = (item) => { if (item.off) return; close(); item.act(); };
  return html`<div class=${cx("menu", name)} ref=${box} onKeyDown=${keys}>
    <button type="button" ref=${button} aria-haspopup="menu" aria-expanded=${open ? "true" : "false"} aria-controls=${open ? id : undefined} aria-label=${children ? undefined : label} class=${children ? undefined : "icon-only"} onClick=${() => setOpen(!open)}>${children ?? html`<${Icon} name="more" />`}</button>
    ${open ? html`<ul id=${id} role="menu" aria-label=${label}>${items.filter(Boolean).map((item) => html`<li key=${item.text} role="none">
      <button type="button" role=${item.checked === undefined ? "menuitem" : "menuitemcheckbox"} aria-checked=${item.checked === undefined ? undefined : String(item.checked)} class=${item.danger ? "menu-danger" : ""} aria-disabled=${item.off ? "true" : undefined} title=${item.off || undefined} tabindex="-1" onClick=${() => pick(item)}>${item.text}${item.off ? html`<span class="menu-why">${item.off}</span>` : null}</button>
    </li>`)}</ul>` : null}
  </div>`;
};

const margin = 8; // px to the edge of the window

// keepInSight moves a menu into the window.
const keepInSight = (list) => {
  const { left, right } = list.getBoundingClientRect();
  const by = left < margin ? margin - left : Math.min(0, document.documentElement.clientWidth - margin - right);
  if (by) list.style.translate = `${by}px`;
};

const entries = (box) => [...(box?.querySelectorAll("[role^=menuitem]") ?? [])];
