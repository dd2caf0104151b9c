// The dialog that closes an account.
import { html, useState } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { Dialog } from "./dialog.js";
import { ErrorBox } from "./errorbox.js";
import { Field } from "./fields.js";
import { useAction } from "./load.js";
import { toast } from "./toast.js";

export const CloseAccount = ({ name, onClose }) => {
  const [until, setUntil] = useState(""), [reason, setReason] = useState("");
  const [run, busy, error] = useAction(async () => {
    await post(`/api/accounts/${encodeURIComponent(name)}/close`, { reason, until: until ? new Date(until).toISOString() : undefined });
    toast(`Account ${name} is closed.`);
    onClose();
  });
  const foot = html`<button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${busy}>${busy ? "Working…" : "Close account"}</button>`;
  return html`<${Dialog} title=${`Close account ${name}`} onClose=${onClose} onSubmit=${run} foot=${foot}>
    <p>Its agents claim no tasks. Running tasks go on, and the others wait in their order.</p>
    <${Field} label="Reason, which others see" error=${error} name="reason">${(p) => html`<input ...${p} data-first="" maxlength="300" value=${reason} onInput=${(e) => setReason(e.target.value)} />`}</${Field}>
    <${Field} label="Until" hint="Empty: until someone opens it." error=${error} name="until">${(p) => html`<input ...${p} type="datetime-local" value=${until} onInput=${(e) => setUntil(e.target.value)} />`}</${Field}>
    <${ErrorBox} error=${error?.field ? null : error} />
  </${Dialog}>`;
};
