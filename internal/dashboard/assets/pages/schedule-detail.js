// One schedule with its recorded firings.
import { html } from "../lib/dom.js";
import { clock, full } from "../lib/time.js";
import { Card } from "../parts/card.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Icon } from "../parts/icon.js";
import { useLoad } from "../parts/load.js";
import { TaskLink } from "../parts/tasklink.js";
import { Text } from "../parts/text.js";
import { Actions, Outcomes, Standing, toList, useRefresh, When, whom } from "./schedule-row.js";
import { fulls, inZone, markOf, misses, outcomeText, overlaps } from "./schedule-words.js";

export const Detail = ({ id }) => {
  const path = `/api/schedules/${encodeURIComponent(id)}`;
  const { data: s, error, again } = useLoad(path, 15_000);
  useRefresh(again);
  if (!s) return error ? html`<${Missing} id=${id} error=${error} again=${again} />` : html`<p class="quiet">Loading ${id}…</p>`;
  return html`
    <div class="page-head">
      <div class="head-title"><h1>${s.name}</h1><p class="head-line"><${Standing} s=${s} /><span class="quiet">for ${whom(s)}</span></p></div>
      <${Actions} s=${s} again=${again} gone=${toList} />
    </div>
    <${ErrorBox} error=${error} retry=${again} />
    <div class="columns">
      <div class="stack">
        <${Card} title="What it submits"><div class="card-body">${s.description && html`<p>${s.description}</p>`}<${Text} text=${s.message} /></div></${Card}>
        <${Executions} id=${s.id} zone=${s.timezone} newest=${s.last_run_at} />
      </div>
      <aside class="stack" aria-label="About this schedule">
        <${Card} title="When"><div class="card-body stack-small"><${When} s=${s} /><${Outcomes} s=${s} /></div></${Card}>
        <${Facts} s=${s} />
      </aside>
    </div>`;
};

const Missing = ({ id, error, again }) => (error.code === "not_found"
  ? html`<div class="page-head"><h1>No such schedule</h1></div><${Empty} title=${`There is no schedule ${id}.`} text="It may have been removed, or be a job of a standalone scheduler." command="signalbox schedules"><p><a href="/ui/schedules">All schedules</a></p></${Empty}>`
  : html`<${ErrorBox} error=${error} retry=${again} />`);

const Facts = ({ s }) => html`
  <${Card} title="Facts"><dl class="facts card-body">${[
    ["If it overlaps", `it ${overlaps[s.overlap] ?? s.overlap}`],
    ["Missed times", `${misses[s.missed] ?? s.missed}, of the last ${Math.round(s.missed_window_seconds / 360) / 10} h`],
    ["If the queue is full", fulls[s.on_full] ?? s.on_full],
    ["Model", [s.model, s.tier].filter(Boolean).join(", ")],
    ["Time limit", s.timeout_seconds && `${s.timeout_seconds} s`],
    ["Priority", s.priority && String(s.priority)],
    ["Conversation", s.session_id],
    ["Owner", s.owner_id],
    ["Comes from", s.source === "config" ? "the configuration file" : "the API or these pages"],
    ["Made", clock(s.created_at), full(s.created_at)],
    ["Changed", clock(s.updated_at), full(s.updated_at)],
    ["Id", html`<code>${s.id}</code>`],
  ].filter((row) => row[1]).map(([name, value, title]) => html`<dt key=${name}>${name}</dt><dd title=${title}>${value}</dd>`)}</dl></${Card}>`;

const Executions = ({ id, zone, newest }) => {
  const { data, error, again } = useLoad(`/api/schedules/${encodeURIComponent(id)}/executions?limit=100`, 15_000);
  useRefresh(again);
  const list = data?.executions ?? [];
  return html`
    <${Card} title="Firings, newest first" side=${html`<span class="quiet" title=${full(newest)}>${newest ? `last ${clock(newest)}` : ""}</span>`}>
      <${ErrorBox} error=${error} retry=${again} />
      ${data && list.length === 0 && html`<p class="card-body quiet">It has not fired yet.</p>`}
      <ul class="firings">${list.map((run) => {
        const [icon, tone] = markOf(run);
        return html`<li key=${run.id}>
          <span class=${`state tone-${tone}`}><${Icon} name=${icon} />${run.status}</span>
          <span title=${full(run.nominal_at)}>${inZone(run.nominal_at, zone)}</span>
          <span class="quiet">${{ manual: `by hand${run.by ? `, ${run.by}` : ""}`, missed: "made up for", cron: "on time" }[run.trigger] ?? run.trigger}${late(run)}</span>
          <span>${run.queue_id ? html`<${TaskLink} id=${run.queue_id} />` : outcomeText(run)}</span>
          ${run.error && html`<span class="firing-error">${run.error}</span>`}
        </li>`;
      })}</ul>
    </${Card}>`;
};

const late = (run) => {
  const seconds = Math.round((Date.parse(run.fired_at) - Date.parse(run.nominal_at)) / 1000);
  return run.trigger === "cron" && seconds >= 2 ? `, ${seconds} s late` : "";
};
