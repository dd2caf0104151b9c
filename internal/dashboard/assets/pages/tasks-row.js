// A row of the tasks: where it stands, what it is, who has it, how long.
import { html } from "../lib/dom.js";
import { isEnded } from "../lib/board.js";
import { useMay } from "../lib/me.js";
import { age, full, range, useNow, took } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { CancelButton, retryTask } from "../parts/cancel.js";
import { doingOf, whoOf } from "../parts/doing.js";
import { State } from "../parts/state.js";
import { taskPath } from "../lib/router.js";
import { shortId, TaskLink } from "../parts/tasklink.js";

export const columns = [
  { name: "pick", label: html`<span class="unseen">Picked</span>` }, { name: "state", label: "State" }, { name: "id", label: "Id" },
  { name: "what", label: "Task" }, { name: "where", label: "Where" }, { name: "time", label: "Time" }, { name: "do", label: html`<span class="unseen">Actions</span>` },
];

export const cells = (t, { picked, toggle }) => [
  html`<input type="checkbox" checked=${picked} onChange=${() => toggle(t)} aria-label=${`Pick ${shortId(t.queue_id)}`} />`,
  html`<${State} state=${t.state} title=${t.reason} />`,
  html`<${TaskLink} id=${t.queue_id} />`,
  html`<${What} task=${t} />`,
  html`<${Where} task=${t} />`,
  html`<${Time} task=${t} />`,
  isEnded(t.state) ? html`<${RetryButton} task=${t} />` : html`<${CancelButton} task=${t} />`,
];

const What = ({ task: t }) => {
  const now = useNow();
  const doing = !isEnded(t.state) && t.state !== "pending" ? doingOf(t, null, now) : null;
  const failed = (t.state === "failed" || t.state === "timeout") && t.message;
  return html`<p class="cut" dir="auto" title=${t.prompt_preview}><a class="row-title" href=${taskPath(t.queue_id)}>${t.tool && html`<code>${t.tool}</code> `}${t.prompt_preview}</a>${doing && html` <span class=${`tone-${doing.tone} small-text`}>${doing.text}</span>`}${failed && html` <span class="tone-bad small-text">${t.message}</span>`}</p>`;
};

const Where = ({ task: t }) => html`<p class="cut small-text quiet">${t.agent && t.state !== "pending" ? html`<${AgentLink} name=${t.agent} />` : html`${t.position ? `#${t.position} in ` : ""}${t.queue}`}${whoOf(t) && ` · ${whoOf(t)}`}</p>`;

const Time = ({ task: t }) => {
  const now = useNow();
  if (isEnded(t.state)) {
    const ran = t.started_at && t.ended_at ? ` · ran ${took((Date.parse(t.ended_at) - Date.parse(t.started_at)) / 1000)}` : "";
    return html`<p class="cut small-text quiet" title=${full(t.ended_at)}>${age(t.ended_at, now)} ago${ran}</p>`;
  }
  if (t.state === "pending") return html`<p class="cut small-text quiet" title=${full(t.created_at)}>waits ${age(t.created_at, now)}${t.eta ? ` · ${range(t.eta)}` : ""}</p>`;
  return html`<p class="cut small-text quiet" title=${full(t.started_at)}>${t.started_at ? `runs ${age(t.started_at, now)}` : "starting"}</p>`;
};

const RetryButton = ({ task }) => {
  const may = useMay(task.mode === "tool" ? "tool" : "submit");
  return html`<button type="button" class="small" disabled=${!may.ok} title=${may.why || undefined} aria-label=${`Retry ${shortId(task.queue_id)}`} onClick=${() => retryTask(task)}>Retry</button>`;
};
