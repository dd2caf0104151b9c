// Dialogs are the browser's own: the rest of the page is inert, Esc closes them, and
// the focus returns.
import { html, store, useStore, useEffect, useRef, useId, cx } from "../lib/dom.js";
import { Icon } from "./icon.js";

const open = store([]);

// openDialog shows make(close) until close is called.
export const openDialog = (make) => {
  const entry = { make, close: () => open.set(open.get().filter((e) => e !== entry)) };
  open.set([...open.get(), entry]);
  return entry.close;
};

// DialogHost renders the open dialogs, in the frame.
export const DialogHost = () => useStore(open).map((entry, i) => html`<${Held} key=${i} entry=${entry} />`);
const Held = ({ entry }) => entry.make(entry.close);

// Dialog is a form if it has onSubmit. foot has the buttons.
export const Dialog = ({ title, onClose, onSubmit, foot, wide, children }) => {
  const ref = useRef(null), id = useId();
  useEffect(() => {
    const from = document.activeElement;
    const dialog = ref.current;
    dialog.showModal();
    dialog.querySelector("[data-first]")?.focus();
    return () => {
      dialog.close();
      if (from?.isConnected) from.focus();
    };
  }, []);
  const submit = (e) => { e.preventDefault(); onSubmit?.(e); };
  const inside = html`<header><h2 id=${id}>${title}</h2><button type="button" class="plain icon-only" aria-label="Close" onClick=${onClose}><${Icon} name="cross" /></button></header>
    <div class="dialog-body">${children}</div>${foot ? html`<footer>${foot}</footer>` : null}`;
  return html`<dialog ref=${ref} class=${cx(wide && "wide")} aria-labelledby=${id} onCancel=${(e) => { e.preventDefault(); onClose(); }}
    onMouseDown=${(e) => { if (e.target === ref.current) onClose(); }}>
    ${onSubmit ? html`<form onSubmit=${submit} novalidate>${inside}</form>` : html`<div class="form">${inside}</div>`}
  </dialog>`;
};
