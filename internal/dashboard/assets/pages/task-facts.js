// The facts of a task: who submitted it, its times and settings.
import { html } from "../lib/dom.js";
import { isWaiting } from "../lib/board.js";
import { money } from "../lib/money.js";
import { clock, full, span, took } from "../lib/time.js";
import { conversationPath, searchPath } from "../lib/router.js";
import { AgentLink } from "../parts/agentlink.js";
import { startsIn } from "../parts/why.js";
import { figures } from "./task-result.js";

export const Facts = ({ task }) => html`
  <section class="card" aria-labelledby="facts-head">
    <header class="card-head"><h2 id="facts-head">Facts</h2></header>
    <dl class="facts card-body">
      ${rows(task).filter((row) => row[1]).map(([name, value, title]) => html`<dt key=${name}>${name}</dt><dd title=${title}>${value}</dd>`)}
    </dl>
  </section>`;

const rows = (task) => [
  ["Asked by", asker(task)],
  ["Queue", task.queue],
  ["Position", isWaiting(task.state) && task.position > 0 && `${task.position_approximate ? "about " : ""}${task.position}`],
  ["Starts", task.state === "pending" && (task.eta ? `${startsIn(task.eta)}, by the last ${task.eta.runs} runs` : "unknown")],
  ["Agent", task.agent && html`<${AgentLink} name=${task.agent} />`],
  ["Created", clock(task.created_at), full(task.created_at)],
  ["Changed", task.edited_at && [clock(task.edited_at), task.edited_by && `by ${task.edited_by}`].filter(Boolean).join(" "), full(task.edited_at)],
  ["Not before", task.not_before && clock(task.not_before), full(task.not_before)],
  ["Waited", task.dispatched_at && span((Date.parse(task.dispatched_at) - Date.parse(task.created_at)) / 1000)],
  ["Started", task.started_at && clock(task.started_at), full(task.started_at)],
  ["Ended", task.ended_at && clock(task.ended_at), full(task.ended_at)],
  ["Ran", task.started_at && task.ended_at && took((Date.parse(task.ended_at) - Date.parse(task.started_at)) / 1000)],
  ["Failed attempts", task.attempts > 0 && `${task.attempts}${task.max_attempts ? ` of ${task.max_attempts}` : ""}`],
  ["Ended because", task.reason],
  ["Figures", task.result && figures(task.result)],
  ["Cost of all runs", task.cost_usd > (task.result?.cost_usd ?? 0) * 1.000001 && money(task.cost_usd)],
  ["Needs", Object.entries(task.needs ?? {}).map(([name, n]) => `${n} of ${name}`).join(", ")],
  ["Budget", task.budget && [task.budget.usd && money(task.budget.usd), task.budget.tokens && `${task.budget.tokens.toLocaleString()} tokens`].filter(Boolean).join(", ")],
  ["Model", [task.model, task.tier].filter(Boolean).join(", ")],
  ["Ran with", task.result?.model !== task.model && task.result?.model],
  ["Time limit", limit(task)],
  ["Priority", task.priority ? String(task.priority) : ""],
  ["If lost", task.on_lost === "requeue" ? "it is queued again" : ""],
  ["Session", task.session_id && (task.agent ? html`<a href=${conversationPath(task.agent, task.session_id)}>${task.session_id}</a>` : html`<a href=${searchPath("session:" + task.session_id)}>${task.session_id}</a>`)],
  ["Workspace", (task.workspace || task.base) && [task.workspace, task.repo, task.base && `from ${task.base}`].filter(Boolean).join(" · ")],
  ["Project", task.project && [task.project.name, task.project.path].filter(Boolean).join(" · ")],
  ["Thinking", task.thinking === undefined ? "" : task.thinking ? "on" : "off"],
  ["Id at the agent", task.task_id],
  ["Fence", task.fence ? String(task.fence) : ""],
];

const limit = (task) => (task.timeout_ms ? span(task.timeout_ms / 1000) : task.timeout_seconds ? span(task.timeout_seconds) : "");

const ways = { web: "from these pages", cli: "with the command line", api: "over the API", user: "in a chat", scheduler: "by a schedule", agent: "as an agent" };

// asker says who submitted the task, and how.
const asker = (task) => {
  const who = task.source_user_email || task.source_user_id || task.source_service;
  const way = task.mode === "chat" ? "in a chat" : task.mode === "bypass" ? "beside the queue" : ways[task.source] ?? task.source;
  if (task.source_agent) return html`agent <${AgentLink} name=${task.source_agent} />, in one of its tasks`;
  if (task.source === "scheduler") {
    const job = task.source_job;
    return job ? html`schedule <a href=${"/ui/schedules/" + encodeURIComponent(job)}>${job}</a>${who && ` of ${who}`}` : `a schedule${who ? ` of ${who}` : ""}`;
  }
  return [who || "a caller without a name", way, task.source_job].filter(Boolean).join(", ");
};
