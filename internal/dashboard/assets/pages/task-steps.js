// The steps of a task's history. Pure functions.
import { isEnded } from "../lib/board.js";
import { clock, local } from "../lib/time.js";

export const mostCalls = 40; // bars for the latest calls

const requeueWords = { busy: "was busy", refuse: "did not take it", unsent: "was not sent it", lost: "was lost", release: "was released" };

// stepsOf returns what happened to a task, in order: {label, kind, from, to, note, after}, in ms.
// after is the task whose end ended a wait.
export const stepsOf = (task, now, before) => {
  const steps = [];
  const add = (label, kind, from, to, note) => { if (to >= from) steps.push({ label, kind, from, to, note }); };
  let at = Date.parse(task.created_at), queued = false, parked = ""; // reason, until the next claim
  const claimed = (time) => {
    const due = task.not_before ? Date.parse(task.not_before) : 0;
    if (due > at && steps.length === 0) { add(`Not before ${clock(task.not_before)}`, "wait", at, Math.min(due, time)); at = Math.min(due, time); }
    const place = !queued && task.queued_as ? `Number ${task.queued_as} in line when it was submitted.` : "";
    if (parked) add("Parked", "wait", at, time, parked);
    else if (time - at >= 1 || steps.length === 0) add("Queued", "wait", at, time, place);
    queued = true;
    parked = "";
  };
  for (const one of task.requeues ?? []) {
    const began = Date.parse(one.claimed_at ?? one.at);
    claimed(began);
    at = Date.parse(one.at);
    if (one.event === "park") {
      add(`Run on ${one.agent || "its agent"}`, "run", began, at);
      parked = one.message || "its gate was closed";
      continue;
    }
    add(`${one.agent || "The agent"} ${requeueWords[one.event] ?? one.event}`, "bad", began, at, one.message);
  }
  const end = isEnded(task.state) ? Date.parse(task.ended_at) : now;
  if (!task.dispatched_at) {
    if (parked && task.waiting_for) parked = local(task.waiting_for.text, now);
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
