// Adjacent failures with one cause, as one row of the task list.
import { html } from "../lib/dom.js";
import { useMay } from "../lib/me.js";
import { age, useNow } from "../lib/time.js";
import { State } from "../parts/state.js";
import { bulk, queriesOf } from "./tasks-bulk.js";

// groupCells returns the cells of a group; how is {open, toggle, picked, pick}: toggle unfolds it, pick selects all of it.
export const groupCells = (shown, group, how) => shown.map((c) => cell[c.name]?.(group, how));

const cell = {
  pick: ({ tasks }, { picked, pick }) => html`<input type="checkbox" checked=${tasks.every((t) => picked.has(t.queue_id))} onChange=${pick} aria-label=${`Select these ${tasks.length} failures`} />`,
  state: ({ tasks: [first] }) => html`<${State} state=${first.state} title=${first.reason} />`,
  what: ({ tasks }, { open, toggle }) => html`<p class="cut" dir="auto"><button type="button" class="small plain group-open" aria-expanded=${String(open)} onClick=${toggle}>${tasks.length} ×</button> <span class="tone-bad" title=${lineOf(tasks[0])}>${lineOf(tasks[0])}</span></p>`,
  where: ({ tasks }) => html`<${Where} tasks=${tasks} />`,
  time: ({ tasks }) => html`<${Time} tasks=${tasks} />`,
  do: (group) => html`<${RetryAll} group=${group} />`,
};

const lineOf = (t) => t.failure_line || t.message;

const Where = ({ tasks }) => {
  const agents = [...new Set(tasks.map((t) => t.agent).filter(Boolean))];
  return html`<p class="cut small-text quiet">${agents.length > 1 ? `${agents.length} agents` : agents[0]}</p>`;
};

const Time = ({ tasks }) => {
  const now = useNow(), ends = tasks.map((t) => t.ended_at).sort();
  const last = age(ends.at(-1), now), first = age(ends[0], now);
  return html`<p class="cut small-text quiet">${last === first ? last : `${last}–${first}`} ago</p>`;
};

const RetryAll = ({ group }) => {
  const may = useMay("submit");
  return html`<button type="button" class="small" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => retryAll(group)}>Retry all…</button>`;
};

export const retryAll = ({ tasks }) => bulk(queriesOf(tasks, true), "retry", () => {});
