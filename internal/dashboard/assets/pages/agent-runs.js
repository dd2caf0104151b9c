// The last runs of an agent, with their durations.
import { cx, html, useEffect } from "../lib/dom.js";
import { onChange } from "../lib/live.js";
import { clock, full, span } from "../lib/time.js";
import { Card } from "../parts/card.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useLoad } from "../parts/load.js";
import { State } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";
import { usual } from "./agents.js";

const count = 40; // the number of runs behind an estimate
const ended = new Set(["completed", "failed", "cancelled", "timeout"]);

export const Runs = ({ name, typical }) => {
  const { data, error, again } = useLoad(`/api/history?agent=${encodeURIComponent(name)}&limit=${count}`);
  useEffect(() => onChange((event, change) => {
    if (event !== "change" || change.tasks?.some((t) => t.agent === name && ended.has(t.state))) again();
  }), [name, again]);
  const runs = data?.tasks ?? [];
  const longest = Math.max(1, ...runs.map(seconds));
  return html`
    <${Card} title=${`Last ${runs.length || ""} runs`} side=${html`<span class="quiet">${typical ? `typical: ${usual(typical)}` : "typical: unknown below 5 runs"}</span>`}>
      <${ErrorBox} error=${error} retry=${again} />
      ${data && runs.length === 0 && html`<p class="card-body quiet">No task has ended on it yet.</p>`}
      <ul class="list runs">${runs.map((run) => html`
        <li key=${run.queue_id} class="run-bar-row">
          <${TaskLink} id=${run.queue_id} /> <${State} state=${run.state} />
          <span class="run-track" aria-hidden="true"><span class=${cx("run-bar", run.state === "completed" ? "is-good" : "is-bad")} style=${{ width: `${(100 * seconds(run)) / longest}%` }}></span></span>
          <span class="run-time">${run.started_at ? span(seconds(run)) : "not started"}</span>
          <span class="quiet run-when" title=${full(run.ended_at)}>${clock(run.ended_at)}</span>
          <span class="cut quiet run-what">${run.prompt_preview}</span>
        </li>`)}</ul>
    </${Card}>`;
};

const seconds = (run) => (run.started_at && run.ended_at ? Math.max(0, (Date.parse(run.ended_at) - Date.parse(run.started_at)) / 1000) : 0);
