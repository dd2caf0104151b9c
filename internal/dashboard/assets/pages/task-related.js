// The task that called a task, and the tasks that it called.
import { html } from "../lib/dom.js";
import { span } from "../lib/time.js";
import { useLoad } from "../parts/load.js";
import { TaskLink } from "../parts/tasklink.js";

const every = 5000; // ms: a running task may call others

export const Related = ({ task }) => {
  const { data: tree } = useLoad(`/api/activities/${encodeURIComponent(task.queue_id)}`, task.ended_at ? 0 : every);
  const below = tree?.children ?? [];
  if (!task.parent_id && below.length === 0) return null;
  return html`
    <section class="card" aria-labelledby="related-head">
      <header class="card-head"><h2 id="related-head">Calls</h2></header>
      <div class="card-body">
        ${task.parent_id && html`<p>Called by <${TaskLink} id=${task.parent_id} />${task.source_agent && ` of ${task.source_agent}`}${task.depth > 1 && `, ${task.depth} calls deep`}</p>`}
        ${below.length > 0 && html`<p>It called:</p><${Tree} list=${below} />`}
      </div>
    </section>`;
};

const Tree = ({ list }) => html`
  <ul class="calls">${list.map((one) => html`
    <li key=${one.id}>
      <${TaskLink} id=${one.id} /> <span>${one.details.tool || one.agent_name || "any agent"}</span>
      <span class="quiet"> ${one.state}${one.duration_ms !== undefined && ` · ${span(one.duration_ms / 1000)}`}</span>
      ${one.children?.length > 0 && html`<${Tree} list=${one.children} />`}
    </li>`)}</ul>`;
