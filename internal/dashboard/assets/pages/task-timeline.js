// The history of a task as bars: each wait and claim, the run, and its tool calls.
import { cx, html } from "../lib/dom.js";
import { isEnded } from "../lib/board.js";
import { query } from "../lib/api.js";
import { taskPath } from "../lib/router.js";
import { clock, took, useNow } from "../lib/time.js";
import { useLoad } from "../parts/load.js";
import { mostCalls, stepsOf } from "./task-steps.js";

export const Timeline = ({ task }) => {
  const now = useNow();
  const steps = stepsOf(task, now, useBefore(task));
  if (steps.length === 0) return null;
  const from = steps[0].from, whole = Math.max(1, ...steps.map((s) => s.to - from));
  const left = Math.max(0, (task.calls?.length ?? 0) - mostCalls);
  return html`
    <section class="card" aria-labelledby="timeline-head">
      <header class="card-head"><h2 id="timeline-head">Timeline</h2><span class="quiet">${sumOf(task, now)}</span></header>
      <div class="card-body">
        <ol class="timeline">${steps.map((s, i) => html`
          <li key=${i} class="timeline-row" title=${`${clock(new Date(s.from).toISOString())} to ${clock(new Date(s.to).toISOString())}`}>
            <span class="cut">${s.label}</span>
            <span class="timeline-track" aria-hidden="true"><span class=${cx("timeline-bar", `is-${s.kind}`)}
              style=${{ marginInlineStart: `${(100 * (s.from - from)) / whole}%`, width: `${(100 * (s.to - s.from)) / whole}%` }}></span></span>
            <span class="timeline-took">${took((s.to - s.from) / 1000) || "0s"}</span>
            ${(s.note || s.after) && html`<span class="timeline-note">${s.note} ${s.after && html`Before it ${task.agent} ran <a href=${taskPath(s.after.queue_id)}>${s.after.prompt_preview.split("\n", 1)[0].slice(0, 80) || s.after.queue_id}</a>, until ${clock(s.after.ended_at)}.`}</span>`}
          </li>`)}</ol>
        ${left > 0 && html`<p class="quiet">${left} earlier tool calls are not shown.</p>`}
      </div>
    </section>`;
};

// useBefore is the last task that ended on the agent while this one waited, or null.
const useBefore = (task) => {
  const asks = task.agent && task.mode !== "tool" && task.dispatched_at && Date.parse(task.dispatched_at) - Date.parse(task.created_at) >= 1000;
  const until = asks && new Date(Date.parse(task.dispatched_at) + 1).toISOString();
  const { data } = useLoad(asks ? `/api/history${query({ agent: task.agent, until, limit: 1 })}` : "");
  const before = data?.tasks[0];
  return before && before.queue_id !== task.queue_id && Date.parse(before.ended_at) > Date.parse(task.created_at) ? before : null;
};

const sumOf = (task, now) => {
  const created = Date.parse(task.created_at), ended = task.ended_at ? Date.parse(task.ended_at) : now;
  const began = task.dispatched_at ? Date.parse(task.dispatched_at) : ended;
  const ran = task.started_at && `ran ${took((ended - Date.parse(task.started_at)) / 1000) || "0s"}`;
  return [`waited ${took((began - created) / 1000) || "0s"}`, ran].filter(Boolean).join(" · ");
};
