// A waiting task can be changed: its prompt, who may take it, its priority and its place.
import { html, useState } from "../lib/dom.js";
import { get, patch } from "../lib/api.js";
import { useMay, useOwn } from "../lib/me.js";
import { Dialog } from "../parts/dialog.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Field, routeOf, Who, whoOfQueue } from "../parts/fields.js";
import { useAction } from "../parts/load.js";
import { toast } from "../parts/toast.js";

const address = (task) => `/api/queue/${encodeURIComponent(task.queue_id)}`;

// ToTop moves a task to the front of its queue.
export const ToTop = ({ task, again }) => {
  const may = useMay("cancel");
  const [run, busy, error] = useAction(async () => {
    const now = await patch(address(task), { revision: task.revision, place: "top" });
    toast(`It is at the top of ${now.queue}.`);
    again();
  });
  return html`<button type="button" disabled=${busy || !may.ok || task.position === 1} title=${may.why || (task.position === 1 ? "It is the first in line." : undefined)} onClick=${run}>To the top</button>
    ${error && html`<${ErrorBox} error=${error} />`}`;
};

const place = [["", "as it is"], ["top", "at the front of its queue"], ["back", "behind all tasks of its priority"]];

export const Edit = ({ task, again, onClose }) => {
  const top = useMay("cancel"), admin = useMay("admin"), own = useOwn(task), theirs = !own && !admin.ok;
  const bound = task.session_id || task.mode !== "queue";
  const first = { prompt: task.prompt, who: whoOfQueue(task.queue), priority: String(task.priority ?? 0), place: "" };
  const [form, setForm] = useState(first), [revision, setRevision] = useState(task.revision);
  const set = (name) => ({ target: { value } }) => setForm((was) => ({ ...was, [name]: value }));
  const changed = Object.keys(form).filter((name) => form[name] !== first[name]);
  const [run, busy, error] = useAction(async () => {
    const body = { revision };
    if (changed.includes("prompt")) body.prompt = form.prompt;
    if (changed.includes("who")) Object.assign(body, { agent: "" }, routeOf(form.who));
    if (changed.includes("priority")) body.priority = Number(form.priority);
    if (form.place) body.place = form.place;
    try {
      await patch(address(task), body);
    } catch (refused) {
      again();
      if (refused.code === "conflict") {
        const now = await get(address(task));
        if (now.state === "pending") {
          setRevision(now.revision);
          refused.message = `Somebody changed the task meanwhile${now.edited_by ? ` (${now.edited_by})` : ""}. Press Save again to overwrite it.`;
        }
      }
      throw refused;
    }
    toast("The task was changed.");
    onClose();
    again();
  });
  const foot = html`<button type="button" onClick=${onClose}>Discard</button><button type="submit" class="primary" disabled=${busy || changed.length === 0}>${busy ? "Saving…" : "Save"}</button>`;
  return html`<${Dialog} title="Change the task" wide onClose=${onClose} onSubmit=${run} foot=${foot}>
    <${Field} label="Prompt" hint=${theirs ? "Only its submitter or an admin may change this and who takes it." : ""} error=${error} name="prompt">${(p) => html`<textarea ...${p} data-first="" dir="auto" rows="8" disabled=${theirs} value=${form.prompt} onInput=${set("prompt")}></textarea>`}</${Field}>
    <div class="fields">
      <${Field} label="Who may take it" hint=${bound ? "Its conversation is with this agent." : ""} error=${error} name="agent">${(p) => html`<${Who} props=${{ ...p, disabled: theirs || bound }} value=${form.who} onChange=${set("who")} />`}</${Field}>
      <${Field} label="Priority" hint="one step counts as a minute of waiting" error=${error} name="priority">${(p) => html`<input ...${p} type="number" min="-10" max="10" step="1" value=${form.priority} onInput=${set("priority")} />`}</${Field}>
      <${Field} label="Place in line" error=${error} name="place">${(p) => html`<select ...${p} value=${form.place} onChange=${set("place")}>${place.map(([value, text]) => html`<option key=${value} value=${value} disabled=${value === "top" && !top.ok}>${text}</option>`)}</select>`}</${Field}>
    </div>
    ${error && !error.field && html`<${ErrorBox} title="The task was not changed" error=${error} />`}
  </${Dialog}>`;
};
