// The dialog for a new task. Each text has one idempotency key, so that pressing twice,
// or again without an answer, makes one task.
import { html, useState } from "../lib/dom.js";
import { draft } from "../lib/draft.js";
import { newKey, post } from "../lib/api.js";
import { watch } from "../lib/notify.js";
import { taskPath, go } from "../lib/router.js";
import { range } from "../lib/time.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Field, routeOf, Who } from "../parts/fields.js";
import { shortId } from "../parts/tasklink.js";
import { toast } from "../parts/toast.js";

const full = "Queue is full. Please try again later."; // the words of the seed

// openNewTask opens it; given has initial values, such as {agent}.
export const openNewTask = (given = {}) => {
  if (document.querySelector("dialog[open]")) return;
  openDialog((close) => html`<${NewTask} given=${given} onClose=${close} />`);
};

// kept is the draft.
const kept = draft("task");
const remember = (form) => kept.write(form?.prompt.trim() ? form : null);

const begin = { prompt: "", who: "", model: "", priority: "0", minutes: "", notBefore: "", within: "", session: "", project: "", tier: "", thinking: "", open: false };

const NewTask = ({ given, onClose }) => {
  const [form, setForm] = useState(() => {
    const blank = { ...begin, prompt: given.prompt ?? "", who: given.agent ? `agent:${given.agent}` : "" };
    return given.prompt ? blank : { ...blank, ...kept.read(), ...(given.agent && { who: blank.who }) };
  });
  const [sent, setSent] = useState({ text: "", key: "" });
  const [state, setState] = useState({ busy: false, error: null });
  const set = (name) => ({ target: { value } }) => setForm((was) => {
    const now = { ...was, [name]: value };
    if (!given.prompt) remember(now);
    return now;
  });
  const keep = () => {
    onClose();
    if (form.prompt.trim() && !given.prompt) toast("The draft is kept: New task reopens it.");
  };
  const discard = () => { remember(null); onClose(); };
  const submit = async () => {
    const { body, wrong } = bodyOf(form);
    if (state.busy) return;
    if (wrong) return setState({ busy: false, error: wrong });
    const text = JSON.stringify(body);
    const key = sent.text === text ? sent.key : newKey();
    setSent({ text, key });
    setState({ busy: true, error: null });
    try {
      const made = await post("/api/queue/task", body, { headers: { "Idempotency-Key": key } });
      watch(made.queue_id);
      discard();
      toast(`${shortId(made.queue_id)} is queued${made.position ? `, position ${made.position} in ${made.queue}` : ""}${made.eta ? `, starts ${range(made.eta)}` : ""}.`);
      go(taskPath(made.queue_id));
    } catch (error) {
      setState({ busy: false, error });
    }
    return undefined;
  };
  const foot = html`<button type="button" onClick=${discard}>Discard</button><button type="submit" class="primary" disabled=${state.busy}>${state.busy ? "Sending…" : "Submit"}</button>`;
  return html`<${Dialog} title="New task" wide onClose=${keep} onSubmit=${submit} foot=${foot}>
    <${Field} label="Prompt" error=${state.error} name="prompt">${(p) => html`<textarea ...${p} data-first="" rows="6" value=${form.prompt} onInput=${set("prompt")} onKeyDown=${(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) submit(); }}></textarea>`}</${Field}>
    <div class="fields">
      <${Field} label="Who may take it" error=${state.error} name="agent">${(p) => html`<${Who} props=${p} value=${form.who} onChange=${set("who")} />`}</${Field}>
      <${Field} label="Model" hint="as its agent calls it" error=${state.error} name="model">${(p) => html`<input ...${p} value=${form.model} onInput=${set("model")} placeholder="the agent's own" autocomplete="off" autocapitalize="none" spellcheck=${false} />`}</${Field}>
    </div>
    <div class="fields">
      <${Field} label="Priority" hint="one step counts as a minute of waiting" error=${state.error} name="priority">${(p) => html`<input ...${p} type="number" min="-10" max="10" value=${form.priority} onInput=${set("priority")} />`}</${Field}>
      <${Field} label="Time limit, minutes" error=${state.error} name="timeout_seconds">${(p) => html`<input ...${p} type="number" min="0" max="10080" step="any" value=${form.minutes} onInput=${set("minutes")} placeholder="the agent's own" />`}</${Field}>
      <${Field} label="Not before" error=${state.error} name="not_before">${(p) => html`<input ...${p} type="datetime-local" value=${form.notBefore} onInput=${set("notBefore")} />`}</${Field}>
    </div>
    <details class="more" open=${form.open} onToggle=${(e) => { if (e.currentTarget.open !== form.open) set("open")({ target: { value: e.currentTarget.open } }); }}><summary>More: conversation, folder, tier</summary>
      <div class="fields">
        <${Field} label="Give up after waiting, minutes" error=${state.error} name="wait_timeout">${(p) => html`<input ...${p} type="number" min="0" max="43200" step="any" value=${form.within} onInput=${set("within")} placeholder="never" />`}</${Field}>
        <${Field} label="Go on in the conversation" hint="its id; its agent takes the task" error=${state.error} name="session_id">${(p) => html`<input ...${p} value=${form.session} onInput=${set("session")} maxlength="128" autocomplete="off" autocapitalize="none" spellcheck=${false} />`}</${Field}>
        <${Field} label="Folder" hint="below the agent’s own" error=${state.error} name="project.path">${(p) => html`<input ...${p} value=${form.project} onInput=${set("project")} autocomplete="off" autocapitalize="none" spellcheck=${false} placeholder="the agent's own" />`}</${Field}>
        <${Field} label="Tier" error=${state.error} name="tier">${(p) => html`<input ...${p} value=${form.tier} onInput=${set("tier")} autocomplete="off" autocapitalize="none" spellcheck=${false} />`}</${Field}>
        <${Field} label="Thinking" error=${state.error} name="thinking">${(p) => html`<select ...${p} value=${form.thinking} onChange=${set("thinking")}><option value="">the agent's own</option><option value="true">on</option><option value="false">off</option></select>`}</${Field}>
      </div>
    </details>
    ${state.error && !state.error.field && html`<${ErrorBox} title=${state.error.code === "queue_full" ? full : "The task was not submitted"} error=${state.error} />`}
  </${Dialog}>`;
};

// bodyOf returns the request of the form, or the wrong field.
const bodyOf = (form) => {
  const body = { prompt: form.prompt, source: "web" };
  if (!form.prompt.trim()) return { wrong: { field: "prompt", message: "Enter a prompt." } };
  Object.assign(body, routeOf(form.who));
  if (form.model.trim()) body.model = form.model.trim();
  const priority = Number(form.priority || 0);
  if (!Number.isInteger(priority) || priority < -10 || priority > 10) return { wrong: { field: "priority", message: "A whole number from -10 to 10." } };
  if (priority !== 0) body.priority = priority;
  const seconds = Math.round(Number(form.minutes || 0) * 60);
  if (!(seconds >= 0 && seconds <= 604800)) return { wrong: { field: "timeout_seconds", message: "0 to 10080 minutes." } };
  if (seconds > 0) body.timeout_seconds = seconds;
  if (form.notBefore) body.not_before = new Date(form.notBefore).toISOString();
  const wait = Math.round(Number(form.within || 0) * 60);
  if (!(wait >= 0 && wait <= 2592000)) return { wrong: { field: "wait_timeout", message: "0 to 43200 minutes." } };
  if (wait > 0) body.wait_timeout = wait;
  if (form.session.trim()) body.session_id = form.session.trim();
  if (form.project.trim()) body.project = { path: form.project.trim() };
  if (form.tier.trim()) body.tier = form.tier.trim();
  if (form.thinking) body.thinking = form.thinking === "true";
  return { body };
};
