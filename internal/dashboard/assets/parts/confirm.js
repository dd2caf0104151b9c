// Asks for confirmation of an irreversible action, and says what it will do. With
// typed, that text must be typed first.
import { html, useState, useId } from "../lib/dom.js";
import { useDanger } from "../lib/live.js";
import { Dialog, openDialog } from "./dialog.js";
import { ErrorBox } from "./errorbox.js";

// Confirm: consequence is a list of sentences or children. onConfirm may be async;
// its error is shown.
export const Confirm = ({ title, consequence = [], action, typed, danger = true, onConfirm, onClose, children }) => {
  const [text, setText] = useState(""), [busy, setBusy] = useState(false), [error, setError] = useState(null);
  const id = useId();
  const alive = useDanger(); // the director may be gone meanwhile
  const ready = alive && !busy && (!typed || text === typed);
  const submit = async () => {
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (cause) {
      setError(cause);
      setBusy(false);
    }
  };
  const foot = html`<button type="button" onClick=${onClose} data-first=${typed ? undefined : ""}>Go back</button>
    <button type="submit" class=${danger ? "danger" : "primary"} disabled=${!ready}>${busy ? "Working…" : action}</button>`;
  return html`<${Dialog} title=${title} onClose=${onClose} onSubmit=${submit} foot=${foot}>
    ${consequence.map((line) => html`<p key=${line}>${line}</p>`)}
    ${children}
    ${typed ? html`<p><label for=${id}>Type <strong>${typed}</strong> to go on</label>
      <input id=${id} data-first="" value=${text} onInput=${(e) => setText(e.target.value)} autocomplete="off" autocapitalize="none" spellcheck=${false} /></p>` : null}
    <${ErrorBox} error=${error} />
  </${Dialog}>`;
};

// confirm opens a Confirm dialog.
export const confirm = (props) => openDialog((close) => html`<${Confirm} ...${props} onClose=${close} />`);
