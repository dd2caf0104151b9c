// What a task does now, in a few words with a tone.
import { age, clock } from "../lib/time.js";

// whoOf says who submitted a task, and how.
export const whoOf = (task) => {
  if (task.source_job) return `schedule ${task.source_job}`;
  if (task.source === "agent") return task.by ? `${task.by} → agent` : "an agent";
  return [task.by, task.source].filter(Boolean).join(" · ");
};

// doingOf returns {text, tone} of a running task. agent is its agent, which may be
// stuck.
export const doingOf = (task, agent, now) => {
  const call = task.call;
  if (task.state === "cancelling") {
    const since = task.cancelling_since ? ` ${age(task.cancelling_since, now)}` : "";
    return { tone: "warn", text: `cancelling${since}, the agent has not confirmed` };
  }
  if (task.state === "dispatching") return { tone: "quiet", text: "being handed over" };
  if (agent?.face === "stuck" && agent.face_text) return { tone: "bad", text: agent.face_text };
  if (call?.waiting) return { tone: "warn", text: `waiting ${age(call.since, now)} for ${call.capacity} — ${call.in_use}/${call.concurrent} slots` };
  if (task.note) return { tone: "warn", text: task.note };
  if (call) return { tone: "busy", text: `calling ${call.tool} (${call.in_use} of ${call.concurrent} slots)` };
  return null;
};

// pausedText says why a line is paused.
export const pausedText = (pause, now) => {
  const until = pause.until ? ` until ${clock(pause.until, now)}` : "";
  return `paused${pause.by ? ` by ${pause.by}` : ""}${until}${pause.reason ? `: ${pause.reason}` : ""}`;
};
