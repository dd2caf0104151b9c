// The course of a task as bars: each wait and each claim, the run, and the tool
// calls in it.
import { cx, html } from "../lib/dom.js";
import { isEnded } from "../lib/board.js";
import { query } from "../lib/api.js";
import { taskPath } from "../lib/router.js";
import { clock, took, useNow } from "../lib/time.js";
import { useLoad } from "../parts/load.js";

const mostCalls = 40; // bars of calls, the latest

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

// useBefore is the task that last ended on the agent while this one waited; null if none did.
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

const requeueWords = { busy: "was busy", refuse: "did not take it", unsent: "was not sent it", lost: "was lost", release: "was released" };

// stepsOf is what happened to a task, in order: {label, kind, from, to, note, after}, in ms;
// after is the task whose end ended a wait.
export const stepsOf = (task, now, before) => {
  const steps = [];
  const add = (label, kind, from, to, note) => { if (to >= from) steps.push({ label, kind, from, to, note }); };
  let at = Date.parse(task.created_at), queued = false;
  const claimed = (time) => {
    const due = task.not_before ? Date.parse(task.not_before) : 0;
    if (due > at && steps.length === 0) { add(`Not before ${clock(task.not_before)}`, "wait", at, Math.min(due, time)); at = Math.min(due, time); }
    const place = !queued && task.queued_as ? `Number ${task.queued_as} in line when it was submitted.` : "";
    if (time - at >= 1 || steps.length === 0) add("Queued", "wait", at, time, place);
    queued = true;
  };
  for (const one of task.requeues ?? []) {
    const began = Date.parse(one.claimed_at ?? one.at);
    claimed(began);
    at = Date.parse(one.at);
    add(`${one.agent || "The agent"} ${requeueWords[one.event] ?? one.event}`, "bad", began, at, one.message);
  }
  const end = isEnded(task.state) ? Date.parse(task.ended_at) : now;
  if (!task.dispatched_at) {
    claimed(end);
    return steps;
  }
  const dispatched = Date.parse(task.dispatched_at), started = task.started_at ? Date.parse(task.started_at) : end;
  claimed(dispatched);
  if (before && steps.at(-1).label === "Queued") steps.at(-1).after = before;
  if (started - dispatched >= 1000 || !task.started_at) add("Handed over", "wait", dispatched, started);
  if (!task.started_at) return steps;
  add(task.agent ? `Run on ${task.agent}` : "Run", task.state === "failed" || task.state === "timeout" ? "bad" : "run", started, end);
  for (const call of (task.calls ?? []).slice(-mostCalls)) {
    const made = Date.parse(call.at), got = made + 1000 * call.waited_seconds;
    if (call.waited_seconds > 0) add(`${call.tool}: waited for ${call.queue || "a slot"}`, "wait", made, got);
    add(call.tool, call.outcome === "ok" ? "call" : "bad", got, made + 1000 * call.took_seconds, call.outcome === "ok" ? "" : call.outcome);
  }
  return steps;
};
