// The dialog to change one's own password.
import { html, useState } from "../lib/dom.js";
import { changePassword as changeOwnPassword } from "../lib/api.js";
import { Dialog, openDialog } from "./dialog.js";
import { ErrorBox } from "./errorbox.js";
import { Field } from "./fields.js";
import { useAction } from "./load.js";
import { toast } from "./toast.js";

export const changePassword = () => openDialog((close) => html`<${Change} onClose=${close} />`);

const Change = ({ onClose }) => {
  const [form, setForm] = useState({ password: "", next: "", again: "" });
  const set = (name) => ({ target: { value } }) => setForm((was) => ({ ...was, [name]: value }));
  const [run, busy, error] = useAction(async () => {
    if (form.next !== form.again) throw Object.assign(new Error("The passwords differ."), { field: "again" });
    await changeOwnPassword(form.password, form.next);
    toast("Your password was changed. All your other logins have ended.");
    onClose();
  });
  const foot = html`<button type="button" onClick=${onClose}>Discard</button><button type="submit" class="primary" disabled=${busy || !form.password || !form.next}>${busy ? "Working…" : "Change it"}</button>`;
  const field = (name, label, hint, complete, first) => html`<${Field} label=${label} hint=${hint} error=${error} name=${name === "next" ? "new_password" : name}>${(p) => html`<input ...${p} type="password" autocomplete=${complete} maxlength="1024" ...${first && { "data-first": "" }} value=${form[name]} onInput=${set(name)} />`}</${Field}>`;
  return html`<${Dialog} title="Change your password" onClose=${onClose} onSubmit=${run} foot=${foot}>
    ${field("password", "Current password", "", "current-password", true)}
    ${field("next", "New password", "12 bytes or more", "new-password")}
    ${field("again", "New password again", "", "new-password")}
    ${error && !["password", "new_password", "again"].includes(error.field) && html`<${ErrorBox} error=${error} />`}
  </${Dialog}>`;
};
