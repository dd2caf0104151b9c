// Usage: what runs used, in tokens and money, by day and by agent, schedule, user or model.
import { html, useEffect, useMemo, useState } from "../lib/dom.js";
import { query as queryOf } from "../lib/api.js";
import { money, tokens } from "../lib/money.js";
import { agentPath, searchPath } from "../lib/router.js";
import { serverNow, span } from "../lib/time.js";
import { Card } from "../parts/card.js";
import { Chart } from "../parts/chart.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useLoad } from "../parts/load.js";
import { columnsOf, dayBefore, searchOf } from "./usage-days.js";

const ranges = [7, 30, 90];
const kinds = [["agent", "Agents"], ["schedule", "Schedules"], ["user", "Users"], ["model", "Models"]];
const every = 60_000; // ms

// viewOf reads the view from the address, so that it can be shared.
const viewOf = (query) => {
  const days = Number(query.get("days")), by = query.get("by");
  return {
    days: ranges.includes(days) ? days : 30, by: kinds.some(([kind]) => kind === by) ? by : "agent",
    filters: Object.fromEntries(kinds.map(([kind]) => [kind, query.get(kind) ?? ""]).filter(([, value]) => value)),
  };
};

const pathOf = ({ days, by, filters }) => `/ui/usage${queryOf({ days: days === 30 ? "" : days, by: by === "agent" ? "" : by, ...filters })}`;

export default ({ query }) => {
  const view = viewOf(query), { days, by, filters } = view;
  const today = new Date(serverNow()).toISOString().slice(0, 10);
  const asked = { from: dayBefore(today, days - 1), to: today, ...filters };
  const daily = useLoad(`/api/usage${queryOf({ by: "day", ...asked })}`, every);
  const sums = useLoad(`/api/usage${queryOf({ by, ...asked })}`, every);
  const total = daily.data?.total, error = daily.error ?? sums.error;
  return html`<div class="page-head"><h1>Usage</h1><p class="quiet">${total && total.runs > 0 ? totalText(total) : ""}</p></div>
    <nav class="chips usage-range" aria-label="Range">${ranges.map((n) => html`<${Pick} key=${n} text=${`${n} days`} picked=${n === days} to=${pathOf({ ...view, days: n })} />`)}
      ${Object.entries(filters).map(([kind, name]) => html`<a key=${kind} class="chip chip-picked" href=${pathOf({ ...view, filters: without(filters, kind) })}><b>${kind}</b> <span dir="auto">${name}</span><span aria-hidden="true">×</span><span class="unseen">, take this filter away</span></a>`)}</nav>
    <${ErrorBox} error=${error} title="The usage could not be loaded" retry=${() => { daily.again(); sums.again(); }} />
    ${!total && !error && html`<p class="quiet" aria-busy="true">Loading…</p>`}
    ${total?.runs === 0 && html`<${Empty} title=${`No run of the last ${days} days reported tokens or costs.`} text="Runs are counted when their agents report them: claude, codex, opencode and llm do, command does not. The same from the command line:" command="signalbox usage" />`}
    ${total?.runs > 0 && html`<div class="stack">
      <${Days} usage=${daily.data} />
      <${Card} title="Sums" name="usage" side=${html`<nav class="chips" aria-label="Sums by">${kinds.map(([kind, text]) => html`<${Pick} key=${kind} text=${text} picked=${kind === by} to=${pathOf({ ...view, by: kind })} />`)}</nav>`}>
        ${sums.data && html`<${Sums} usage=${sums.data} view=${view} />`}
      </${Card}>
    </div>`}`;
};

const without = (filters, kind) => Object.fromEntries(Object.entries(filters).filter(([name]) => name !== kind));

const Pick = ({ text, picked, to }) => html`<a class=${picked ? "chip chip-picked" : "chip"} href=${to} aria-current=${picked ? "true" : undefined}>${text}</a>`;

const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

const totalText = (t) => [money(t.cost_usd), `${tokens(t.input_tokens)} tokens in, ${tokens(t.output_tokens)} out`, plural(t.runs, "run", "runs"), t.failed > 0 && `${t.failed} failed`, t.run_seconds >= 1 && `ran for ${span(t.run_seconds)}`].filter(Boolean).join(" · ");

// Days is the chart: of costs if there are any, else of tokens.
const Days = ({ usage }) => {
  const [at, point] = useState(null);
  const paid = usage.total.cost_usd > 0;
  const value = paid ? (row) => row.cost_usd : (row) => row.input_tokens + row.output_tokens;
  const text = paid ? (n) => money(n) || "$0" : tokens;
  const data = useMemo(() => columnsOf(usage, value), [usage]);
  useEffect(() => point(null), [usage]);
  const most = data[1].indexOf(Math.max(...data[1]));
  const dayAt = (i) => new Date(data[0][i] * 1000).toISOString().slice(0, 10);
  const label = `${paid ? "Costs" : "Tokens"} by day from ${usage.from} to ${usage.to}: ${text(data[1].reduce((a, b) => a + b, 0))} in all, most on ${dayAt(most)}: ${text(data[1][most])}`;
  return html`<${Card} title=${paid ? "Costs by day" : "Tokens by day"} side=${html`<span class="quiet small-text">days in UTC</span>`} name="days">
    <div class="card-body">
      <${Chart} key=${paid} data=${data} series=${[{ label: paid ? "costs" : "tokens", tone: "busy", fill: "busy" }]} label=${label} height=${170} days=${text} onPoint=${point} />
      <p class="legend"><span>${at === null || data[0][at] === undefined ? `most on ${dayAt(most)}: ${text(data[1][most])}` : `${dayAt(at)}: ${text(data[1][at])}`}</span></p>
    </div>
  </${Card}>`;
};

// Sums is a table, also for screen readers when its rows are laid out as lines.
const Sums = ({ usage, view }) => {
  const { by, filters } = view;
  const paid = usage.total.cost_usd > 0;
  const worth = (row) => (paid ? row.cost_usd : row.input_tokens + row.output_tokens);
  return html`<table class="usage-table" role="table" aria-label=${`Usage by ${by}`}>
    <thead role="rowgroup"><tr role="row">${[by, "Share", "Runs", "Failed", "Tokens in", "Tokens out", "Cost"].map((name) => html`<th key=${name} role="columnheader" scope="col">${name}</th>`)}</tr></thead>
    <tbody role="rowgroup">${usage.rows.map((row) => html`<${Row} key=${row.name} row=${row} usage=${usage} by=${by} view=${view} filters=${filters} share=${worth(usage.total) ? worth(row) / worth(usage.total) : 0} />`)}</tbody>
  </table>`;
};

// Count has a word for layouts without column heads.
const Count = ({ n, text }) => html`${n.toLocaleString("en")}<span class="usage-word"> ${text}</span>`;

const unnamed = { agent: "unknown", schedule: "no schedule", user: "no user", model: "unknown" };

const Row = ({ row, usage, by, view, filters, share }) => {
  const search = searchOf(usage, by, row.name, filters);
  const name = row.email || row.name || unnamed[by];
  const narrower = row.name && row.name !== "(other)" && filters[by] !== row.name && pathOf({ ...view, by: by === "model" ? "agent" : "model", filters: { ...filters, [by]: row.name } });
  const percent = Math.round(100 * share);
  return html`<tr role="row">
    <th role="rowheader" scope="row"><span class="cut" dir="auto">${narrower ? html`<a href=${narrower}>${name}</a>` : name}</span>${by === "agent" && row.name && row.name !== "(other)" && html` <a class="small-text usage-agent" href=${agentPath(row.name)}>page<span class="unseen"> of agent ${row.name}</span></a>`}</th>
    <td role="cell" class="usage-share"><span class="usage-track" aria-hidden="true"><span class="usage-bar" style=${{ width: `${100 * share}%` }}></span></span><span class="usage-percent">${share > 0 && percent === 0 ? "<1" : percent}%</span></td>
    <td role="cell">${search ? html`<a href=${searchPath(search)}><${Count} n=${row.runs} text=${row.runs === 1 ? "run" : "runs"} /></a>` : html`<${Count} n=${row.runs} text=${row.runs === 1 ? "run" : "runs"} />`}</td>
    <td role="cell" class=${row.failed ? "tone-bad" : "quiet"}>${row.failed && search ? html`<a href=${searchPath(search.replace("state:ended", "state:failed,timeout"))}><${Count} n=${row.failed} text="failed" /></a>` : html`<${Count} n=${row.failed} text="failed" />`}</td>
    <td role="cell" title=${row.input_tokens.toLocaleString("en")}><${Count} n=${tokens(row.input_tokens)} text="in" /></td>
    <td role="cell" title=${row.output_tokens.toLocaleString("en")}><${Count} n=${tokens(row.output_tokens)} text="out" /></td>
    <td role="cell" class="usage-cost">${money(row.cost_usd) || html`<span class="quiet">none</span>`}</td>
  </tr>`;
};
