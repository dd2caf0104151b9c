// The actions on a task: cancel it, retry it unchanged or edited, release its slot if its
// agent does not confirm a cancel.
import { html, useId, useState } from "../lib/dom.js";
import { newKey, post } from "../lib/api.js";
import { isEnded, isWaiting } from "../lib/board.js";
import { useKeys } from "../lib/keys.js";
import { useMay, useOwn } from "../lib/me.js";
import { go, taskPath } from "../lib/router.js";
import { ahead, local, since, span, useNow } from "../lib/time.js";
import { useLive } from "../lib/live.js";
import { stateText } from "../parts/account-words.js";
import { openAccount } from "../parts/accounts.js";
import { forceRelease } from "../parts/agentactions.js";
import { Confirm } from "../parts/confirm.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Field, routeOf, Who, whoOfQueue } from "../parts/fields.js";
import { useAction } from "../parts/load.js";
import { toast } from "../parts/toast.js";
import { Edit, ToTop } from "./task-edit.js";

const address = (task, verb) => `/api/queue/${encodeURIComponent(task.queue_id)}/${verb}`;

// useMayCancel: the submitter of a task needs fewer rights to cancel and change it.
export const useMayCancel = (task) => {
  const any = useMay("cancel"), own = useMay("submit"), mine = useOwn(task);
  return !any.ok && mine ? own : any;
};

export const TaskActions = ({ task, again }) => {
  const cancel = useMayCancel(task), retry = useMay(task.mode === "tool" ? "tool" : "submit");
  const ended = isEnded(task.state), cancelling = task.state === "cancelling" || task.cancel_requested;
  const askCancel = () => { if (!ended && !cancelling && cancel.ok) openDialog((close) => html`<${Cancel} task=${task} again=${again} onClose=${close} />`); };
  const askRetry = () => { if (ended && retry.ok) openDialog((close) => html`<${Retry} task=${task} onClose=${close} />`); };
  const waits = task.state === "pending" && task.mode !== "tool";
  const askEdit = () => { if (waits && cancel.ok) openDialog((close) => html`<${Edit} task=${task} again=${again} onClose=${close} />`); };
  useKeys({ c: ["cancel this task", askCancel], r: ["retry this task", askRetry], e: ["change this task while it waits", askEdit] });
  if (!ended) {
    return html`<div class="task-actions">
      ${waits && html`<${ToTop} task=${task} again=${again} /><button type="button" disabled=${!cancel.ok} title=${cancel.why || undefined} onClick=${askEdit}>Change…</button>`}
      <button type="button" disabled=${cancelling || !cancel.ok} title=${cancel.why || undefined} onClick=${askCancel}>${cancelling ? "Cancelling…" : "Cancel…"}</button></div>`;
  }
  return html`<div class="task-actions"><button type="button" disabled=${!retry.ok} title=${retry.why || undefined} onClick=${askRetry}>Retry…</button></div>`;
};

const Cancel = ({ task, again, onClose }) => html`
  <${Confirm} title="Cancel the task" action="Cancel it" onClose=${onClose}
    consequence=${[isWaiting(task.state)
      ? task.state === "parked" ? "It leaves the line and does not continue. It can be retried later." : "It leaves the line and never starts. It can be retried later."
      : `${task.agent || "Its agent"} is told to stop it. What it has done so far is not undone; what it has printed stays.`]}
    onConfirm=${async () => {
      const answer = await post(address(task, "cancel"));
      toast(outcome(answer));
      again();
    }} />`;

const outcome = (answer) => {
  if (answer.state === "cancelled") return "The task is cancelled.";
  if (isEnded(answer.state)) return `It had ended before: ${answer.state}.`;
  return "The agent is told to stop, and has not confirmed yet.";
};

// Waits says which account or agent a task waits for, or until when, and what can be done.
export const Waits = ({ task, again }) => {
  const { kind, name, text, until } = task.waiting_for, account = useLive((b) => kind === "account" ? b.accounts.get(name) : undefined), now = useNow();
  const admin = useMay("admin"), cancel = useMay("cancel");
  const parked = task.state === "parked", opens = account ? account.state !== "open" && account.until : until;
  const detail = !account || account.state === "open" ? local(text, now) : account.state === "closed" ? [account.window, account.reason].filter(Boolean).join(": ") : stateText(account, now);
  const [anyway, busy] = useAction(async () => {
    try {
      await post(address(task, "unpark"));
      again();
    } catch (error) {
      toast(`It does not run: ${error.message}.`, "bad");
    }
  });
  return html`<div class="note is-warn">
    <p><strong>${name ? `Waits for ${kind} ${name}` : "Waits"}${opens ? ` until ${ahead(opens, now)}` : ""}</strong> <span dir="auto">${detail && `(${detail})`}</span>.${parked && " It continues where it stopped."}</p>
    ${kind !== "agent" && html`<p class="buttons">
      ${name && account?.state !== "open" && html`<button type="button" disabled=${!admin.ok} title=${admin.why || undefined} onClick=${() => openAccount(name)}>Open account</button>`}
      <button type="button" disabled=${busy || !cancel.ok} title=${cancel.why || "whether the account is open or not"} onClick=${anyway}>Run anyway</button></p>`}
  </div>`;
};

// Unconfirmed is shown while an agent has not confirmed a cancel. began is when the
// director got the cancel; without it, when this page saw it.
export const Unconfirmed = ({ task, began }) => {
  const release = useMay("release"), now = useNow();
  const [first] = useState(() => new Date(now).toISOString());
  const waited = since(began ?? first, now);
  return html`<div class="note is-warn">
    <p><strong>Cancelling for ${span(waited)}${began ? "" : " at least"}:</strong> ${task.agent || "the agent"} has not confirmed that it stopped.</p>
    ${waited >= 5 && task.agent && html`<p>If it does not answer, release its slot: the task then ends as cancelled.${" "}
      <button type="button" disabled=${!release.ok} title=${release.why || undefined} onClick=${() => forceRelease(task.agent)}>Force release…</button></p>`}
  </div>`;
};

// Retry makes a new task from an ended one. The dialog has one key, so that pressing twice
// makes one task.
const Retry = ({ task, onClose }) => {
  const tool = task.mode === "tool";
  const [key] = useState(newKey);
  const [prompt, setPrompt] = useState(task.prompt ?? ""), [model, setModel] = useState(task.model ?? ""), [limit, setLimit] = useState(String(task.timeout_seconds || "")), [who, setWho] = useState(whoOfQueue(task.queue));
  const bound = Boolean(task.session_id) || task.mode !== "queue";
  const ids = { prompt: useId(), model: useId(), limit: useId() };
  const edited = { ...(prompt !== (task.prompt ?? "") && { prompt }), ...(model !== (task.model ?? "") && { model }), ...(Number(limit) !== (task.timeout_seconds ?? 0) && { timeout_seconds: Number(limit) }), ...(who !== whoOfQueue(task.queue) && { agent: "", ...routeOf(who) }) };
  const changes = Object.keys(edited).length;
  const [run, busy, error] = useAction(async () => {
    const made = await post(address(task, "retry"), changes ? edited : {}, { headers: { "Idempotency-Key": `${key}-${digest(edited)}` } });
    onClose();
    go(taskPath(made.queue_id));
  });
  const foot = html`<button type="button" onClick=${onClose}>Discard</button>
    <button type="submit" class="primary" data-first="" disabled=${busy}>${busy ? "Working…" : changes ? "Retry with the changes" : "Retry as it was"}</button>`;
  return html`<${Dialog} title="Retry the task" wide=${!tool} onClose=${onClose} onSubmit=${run} foot=${foot}>
    <p>A new task is made; this one stays as it ended. ${tool ? "The tool is called with the same arguments." : "Change it, or leave it as it is."}</p>
    ${!tool && html`
      <p><label for=${ids.prompt}>Prompt</label><textarea id=${ids.prompt} rows="8" value=${prompt} onInput=${(e) => setPrompt(e.target.value)}></textarea></p>
      <div class="fields">
        <${Field} label="Who may take it" hint=${bound ? "Its conversation is with this agent." : ""} error=${error} name="agent">${(p) => html`<${Who} props=${{ ...p, disabled: bound }} value=${who} onChange=${(e) => setWho(e.target.value)} />`}</${Field}>
        <p><label for=${ids.model}>Model</label><input id=${ids.model} value=${model} placeholder="the agent's own" autocomplete="off" autocapitalize="none" spellcheck=${false} onInput=${(e) => setModel(e.target.value)} /></p>
        <p><label for=${ids.limit}>Time limit in seconds</label><input id=${ids.limit} type="number" min="0" max="604800" value=${limit} placeholder="the agent's own" onInput=${(e) => setLimit(e.target.value)} /></p>
      </div>`}
    <${ErrorBox} error=${error} />
  </${Dialog}>`;
};

// digest identifies a text: an edited request needs another key. It is not for security.
const digest = (value) => {
  let sum = 0;
  for (const c of JSON.stringify(value)) sum = (Math.imul(sum, 31) + c.codePointAt(0)) >>> 0;
  return sum.toString(16);
};
