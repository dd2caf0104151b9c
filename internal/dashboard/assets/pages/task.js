// One task: facts, state, reasons, output and actions.
import { html, useCallback } from "../lib/dom.js";
import { useLive, useOnTask } from "../lib/live.js";
import { unwatch, useWatched, watch } from "../lib/notify.js";
import { useKeys } from "../lib/keys.js";
import { neighbours, useSubject } from "../lib/place.js";
import { conversationPath, go, taskPath } from "../lib/router.js";
import { full, since, span, useNow } from "../lib/time.js";
import { isEnded, isWaiting } from "../lib/board.js";
import { useLoad } from "../parts/load.js";
import { Output } from "../parts/output.js";
import { Why } from "../parts/why.js";
import { Copy } from "../parts/copy.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { AgentLink } from "../parts/agentlink.js";
import { State } from "../parts/state.js";
import { Text } from "../parts/text.js";
import { TaskActions, Unconfirmed, Waits } from "./task-actions.js";
import { Attempts } from "./task-attempts.js";
import { Changes } from "./task-diff.js";
import { Facts } from "./task-facts.js";
import { Checks } from "./task-checks.js";
import { Landing } from "./task-landing.js";
import { Result, Stale } from "./task-result.js";
import { Related } from "./task-related.js";
import { Timeline } from "./task-timeline.js";
import { ToolCall } from "./task-tool.js";

const every = 5000; // ms between two reads of a task that has not ended

export default ({ id }) => {
  const path = `/api/queue/${encodeURIComponent(id)}`;
  const { data: task, error, again } = useLoad(path, every);
  useOnTask(id, useCallback(() => { again(); }, [again]));
  const { before, after } = neighbours(id);
  useKeys({
    w: ["why it is not running", showWhy],
    "[": ["the task before, in the list", () => (before ? (go(taskPath(before), { replace: true }), true) : false)],
    "]": ["the next task in the list", () => (after ? (go(taskPath(after), { replace: true }), true) : false)],
  });
  useSubject(task ? titleOf(task).slice(0, 80) : "");
  if (!task) return error ? html`<${Missing} id=${id} error=${error} again=${again} />` : html`<p class="quiet">Loading ${id}…</p>`;
  return html`<${Whole} key=${id} task=${task} error=${error} again=${again} />`;
};

// showWhy scrolls to the panel, which is at the end on a phone.
const showWhy = () => {
  const panel = document.querySelector(".why");
  if (!panel) return false;
  panel.tabIndex = -1;
  panel.focus();
  panel.scrollIntoView({ block: "nearest" });
  return true;
};

const Missing = ({ id, error, again }) => {
  if (error.code !== "not_found") return html`<div class="page-head"><h1>Task</h1></div><${ErrorBox} error=${error} retry=${again} />`;
  return html`<div class="page-head"><h1>No such task</h1></div>
    <${Empty} title=${`There is no task ${id}.`} text="It never existed, or it has been pruned. These are known:" command="signalbox history">
      <p><a href="/ui/tasks">All tasks</a></p></${Empty}>`;
};

const Whole = ({ task, error, again }) => {
  const ended = isEnded(task.state);
  return html`
    <article class="task">
      <${Head} task=${task} again=${again} />
      ${error && html`<${ErrorBox} error=${error} retry=${again} />`}
      <${Notes} task=${task} again=${again} />
      <div class="columns">
        <div class="stack">
          ${task.mode === "tool" && html`<${ToolCall} task=${task} />`}
          ${ended && task.mode !== "tool" && html`<${Result} task=${task} />`}
          ${ended && task.result?.checks && html`<${Checks} checks=${task.result.checks} />`}
          <${Landing} task=${task} again=${again} />
          ${ended && task.result?.changes && html`<${Changes} task=${task} />`}
          ${!ended && task.mode !== "tool" && html`<${Prompt} task=${task} />`}
          <${Timeline} task=${task} />
          <${Output} id=${task.queue_id} state=${task.state} failure=${task.failure_line} />
          ${ended && task.mode !== "tool" && html`<${Prompt} task=${task} />`}
          <${Attempts} task=${task} />
          ${task.stale?.length > 0 && html`<${Stale} list=${task.stale} />`}
        </div>
        <aside class="stack" aria-label="About this task">
          ${!ended && html`<div class="card"><div class="card-body"><${Why} id=${task.queue_id} /></div></div>`}
          <${Facts} task=${task} />
          <${Related} task=${task} />
        </aside>
      </div>
    </article>`;
};

const Head = ({ task, again }) => html`
  <header class="page-head">
    <div class="head-title">
      <h1 class="cut" dir="auto" title=${task.prompt_preview}>${titleOf(task)}</h1>
      <p class="head-line">
        <${State} state=${task.state} />
        <span><code class="task-id">${task.queue_id}</code> <${Copy} text=${task.queue_id} label="Copy the id" /></span>
        ${task.agent && html`<span>on <${AgentLink} name=${task.agent} /></span>`}
        <${Clock} task=${task} />
        ${!isEnded(task.state) && html`<${Watch} id=${task.queue_id} />`}
        <${Neighbours} id=${task.queue_id} />
      </p>
    </div>
    ${task.session_id && task.agent && html`<a class="button" href=${conversationPath(task.agent, task.session_id)}>Open conversation</a>`}
    <${TaskActions} task=${task} again=${again} />
  </header>`;

// Neighbours links to the previous and the next task in the list from which this one was
// opened.
const Neighbours = ({ id }) => {
  const { before, after } = neighbours(id);
  if (!before && !after) return null;
  const step = (to, text, key) => (to
    ? html`<a href=${taskPath(to)} title=${`${text} (${key})`} onClick=${(e) => { if (e.button === 0 && !e.metaKey && !e.ctrlKey && !e.shiftKey) { e.preventDefault(); go(taskPath(to), { replace: true }); } }}>${text}</a>`
    : html`<span class="quiet">${text}</span>`);
  return html`<span class="neighbours" role="group" aria-label="In the list">${step(before, "Previous", "[")} ${step(after, "Next", "]")}</span>`;
};

// Watch notifies of the end of the task in this browser.
const Watch = ({ id }) => {
  const on = useWatched(id);
  return html`<button type="button" class="small" aria-pressed=${on ? "true" : "false"} onClick=${() => (on ? unwatch(id) : watch(id))}>${on ? "Watched" : "Watch"}</button>`;
};

const titleOf = (task) => (task.mode === "tool" ? task.tool : firstLine(task.prompt_preview));
const firstLine = (text) => text.split("\n", 1)[0] || "(an empty prompt)";

// Clock shows the time that matters most now.
const Clock = ({ task }) => {
  const now = useNow();
  if (isEnded(task.state)) {
    return html`<span class="quiet" title=${full(task.ended_at)}>ended ${span(since(task.ended_at, now))} ago</span>`;
  }
  if (isWaiting(task.state)) return html`<span class="quiet" title=${full(task.created_at)}>waiting ${span(since(task.created_at, now))}</span>`;
  const began = task.started_at ?? task.dispatched_at;
  return html`<span class="quiet" title=${full(began)}>${task.started_at ? "running" : "being handed over"} for ${span(since(began, now))}</span>`;
};

// Notes shows the important messages.
const Notes = ({ task, again }) => {
  const live = useLive((board) => board.tasks.get(task.queue_id));
  if (task.state === "cancelling") return html`<${Unconfirmed} task=${task} began=${live?.cancelling_since} />`;
  if (task.state === "failed" || task.state === "timeout") {
    return html`<p class="note is-bad"><strong>${reasonText(task.reason)}</strong> ${task.message}</p>`;
  }
  if (task.state === "cancelled") return html`<p class="note"><strong>Cancelled.</strong> ${task.message}</p>`;
  if (task.waiting_for) return html`<${Waits} task=${task} again=${again} />`;
  if (task.cancel_requested) return html`<p class="note is-warn">A cancel was requested: the task is cancelled as soon as the agent answers.</p>`;
  if (task.last_error) return html`<p class="note is-warn"><strong>Attempt ${task.attempts}${task.max_attempts ? ` of ${task.max_attempts}` : ""} failed:</strong> ${task.last_error}</p>`;
  return null;
};

const reasons = {
  agent_error: "The agent reported an error.", exit_nonzero: "The command failed.", wait_timeout: "It waited too long.",
  dispatch_failed: "No agent took it.", rejected: "The agent refused it.", run_timeout: "It ran too long.",
  lost: "Its agent was lost.", released: "Its slot was taken away.", interrupted: "Its agent was restarted.", stalled: "It printed nothing for too long.", checks: "Its work did not pass its checks.", budget: "What it may spend is used up.",
};

const reasonText = (reason) => reasons[reason] ?? "It failed.";

const Prompt = ({ task, text = task.prompt ?? task.prompt_preview }) => html`
  <section class="card" aria-labelledby="prompt-head">
    <header class="card-head"><h2 id="prompt-head">Prompt</h2><${Copy} text=${text} label="Copy the prompt" /></header>
    <div class="card-body"><${Text} text=${text} /></div>
  </section>`;
