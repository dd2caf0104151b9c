// The line that says whether a person is needed, why, and what to do; and the totals,
// all of one moment.
import { html, useState, cx } from "../lib/dom.js";
import { useLive } from "../lib/live.js";
import { post } from "../lib/api.js";
import { useMay } from "../lib/me.js";
import { agentPath, capacityPath, schedulePath, searchPath, taskPath } from "../lib/router.js";
import { clock, local, span } from "../lib/time.js";
import { Cure } from "../parts/cure.js";
import { Icon } from "../parts/icon.js";
import { TaskLink } from "../parts/tasklink.js";
import { toast } from "../parts/toast.js";

const few = 3; // shown without unfolding

export const Attention = () => {
  const health = useLive((b) => b.health), totals = useLive((b) => b.totals);
  const [all, setAll] = useState(false);
  if (!health || !totals) return null;
  const list = health.attention ?? [];
  const count = list.length + (health.more ?? 0);
  const shown = all ? list : list.slice(0, few);
  const level = list.some((a) => a.level === "error") ? "bad" : "warn";
  return html`<section class=${cx("attention", count > 0 && `attention-${level}`)} aria-label="Health">
    ${count === 0
      ? html`<p class="attention-head tone-good"><${Icon} name="check" />${local(health.text)}</p>`
      : html`<p class=${`attention-head tone-${level}`}><${Icon} name="warn" />${count} ${count === 1 ? "needs" : "need"} attention</p>`}
    ${count > 0 && html`<ul class="attention-list">${shown.map((a) => html`<${Item} key=${keyOf(a)} item=${a} />`)}
      ${(count > shown.length || all) && html`<li><button type="button" class="plain small" onClick=${() => setAll(!all)}>${all ? "fewer" : `and ${count - shown.length} more`}</button>
        ${all && health.more > 0 ? html`<span class="quiet"> ${health.more} beyond these: signalbox status</span>` : null}</li>`}</ul>`}
    <${Figures} totals=${totals} />
    ${health.notes?.length > 0 && html`<ul class="attention-notes" aria-label="Good to know">${health.notes.map((note) => html`<${Note} key=${keyOf(note)} note=${note} />`)}</ul>`}
  </section>`;
};

const keyOf = (a) => a.kind + (a.cause || a.subject + (a.queue_id ?? ""));

const Item = ({ item }) => html`<li class="attention-item">
  <span><${Subject} item=${item} /> ${local(item.text)}${item.query ? html`<span class="quiet small-text"> · ${between(item)}</span>` : item.queue_id && item.queue_id !== item.subject && html` · <${TaskLink} id=${item.queue_id} />`}</span>
  ${item.query ? html`<${Failures} item=${item} />` : html`<${Cure} text=${item.cure} />`}
</li>`;

const between = ({ count, since, last }) => (count > 1 ? `first ${clock(since)}, last ${clock(last)}` : clock(last));

// Failures has the buttons for tasks that failed alike: list them, disable their schedule,
// retry all.
const Failures = ({ item }) => {
  const submit = useMay("submit"), schedule = useMay("schedule");
  return html`<div class="cure">
    <a class="button small" href=${searchPath(item.query)}>Open</a>
    ${item.schedule && schedule.ok && html`<button type="button" class="small" onClick=${() => disable(item.schedule)}>Disable schedule</button>`}
    ${submit.ok && html`<button type="button" class="small" onClick=${async () => (await import("./tasks-bulk.js")).bulk([item.query], "retry", () => {})}>${item.count > 1 ? `Retry all ${item.count}…` : "Retry…"}</button>`}</div>`;
};

const disable = async (name) => {
  try {
    await post(`/api/schedules/${encodeURIComponent(name)}/disable`);
    toast(`Schedule ${name} is disabled.`);
  } catch (error) {
    toast(`${name} is not disabled: ${error.message}.`, "bad");
  }
};

// Note is information, such as a pause.
const Note = ({ note }) => html`<li class="attention-note"><span><${Subject} item=${note} /> ${local(note.text)}</span>
  ${(note.kind === "paused" || note.kind === "account_closed" || note.kind === "tasks_parked") && html`<${Cure} text=${note.cure} plain=${true} />`}</li>`;

// Subject links to the page of the thing.
const Subject = ({ item }) => {
  const to = placeOf(item);
  return to ? html`<a href=${to}>${item.subject}</a>` : html`<strong>${item.subject}</strong>`;
};

const placeOf = ({ kind, subject, cure, query }) => {
  if (/^(agent_|stuck|outlasted|run_trouble|cancel_unconfirmed|withheld)/.test(kind)) return agentPath(subject);
  if (query && kind === "tasks_failed") return searchPath(query);
  if (kind === "tasks_parked") return searchPath("state:parked");
  if (kind === "capacity_full" || kind === "tool_closed" || kind === "tool_down") return capacityPath(subject);
  if (kind === "landing_stands") return taskPath(subject);
  if (kind.startsWith("account_")) return capacityPath();
  if (kind.startsWith("schedule_")) return schedulePath(subject);
  if (kind === "queue_full" || kind === "no_agent") return searchPath("state:waiting");
  if (kind === "paused" && cure === `signalbox resume agent:${subject}`) return agentPath(subject);
  return "";
};

const Figures = ({ totals: t }) => {
  const to = (query, text) => html`<a href=${searchPath(query)}>${text}</a>`;
  const parts = [to("state:working,dispatching,cancelling", `${t.running} running`), to("state:waiting", `${t.pending} waiting`)];
  if (t.pending > 0) parts.push(`oldest ${span(t.oldest_age_seconds)}`);
  if (t.tools_running + t.tools_waiting > 0) parts.push(`${t.tools_running} tool calls, ${t.tools_waiting} waiting`);
  parts.push(html`${to("state:completed since:24h", `${t.done_24h} done`)}, ${to("state:failed,timeout since:24h", `${t.failed_24h} failed`)} (${t.ended_since_ms ? `since ${clock(t.ended_since_ms)}` : "24h"})`);
  return html`<p class="figures" title=${`${t.running} of ${t.slots} slots in use, ${t.agents_up} of ${t.agents} agents up`}>${parts.map((part, i) => html`${i > 0 && " · "}${part}`)}</p>`;
};
