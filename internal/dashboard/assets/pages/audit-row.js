// A row of the audit log: one line, with details when opened.
import { cx, html, useMemo, useState } from "../lib/dom.js";
import { agentPath, schedulePath, taskPath } from "../lib/router.js";
import { clock, full } from "../lib/time.js";
import { Icon } from "../parts/icon.js";
import { shortId } from "../parts/tasklink.js";

const results = { success: ["check", "good"], denied: ["lock", "warn"], failed: ["cross", "bad"] };

export const Row = ({ row }) => {
  const [open, setOpen] = useState(false);
  const details = useMemo(() => parse(row.details), [row.details]);
  const [icon, tone] = results[row.result] ?? ["ring", "quiet"];
  const id = `audit-${row.seq}`;
  return html`<li class=${cx("audit-item", open && "is-open")}>
    <div class="audit-row">
      <button type="button" class="plain audit-open" aria-expanded=${String(open)} aria-controls=${id} onClick=${() => setOpen(!open)} title=${full(row.at)}><span class="unseen">Row ${row.seq}, </span>${clock(row.at)}</button>
      <span class="cut" title=${row.principal}>${who(row)}</span>
      <span class="quiet cut" title=${row.user_agent}>${surface(row)}</span>
      <span class="cut"><strong>${row.action.replaceAll("_", " ")}</strong> <span class="quiet">${row.event_type.replaceAll("_", " ")}</span>${reasonOf(details) && html` <span class="quiet">“${reasonOf(details)}”</span>`}</span>
      <span class="cut">${subject(row)}</span>
      <span class=${`state tone-${tone}`}><${Icon} name=${icon} />${row.result}${row.severity !== "info" && html` <span class="quiet">· ${row.severity}</span>`}</span>
    </div>
    ${open && html`<div class="audit-all" id=${id}><${Change} details=${details} /><${Rest} row=${row} details=${details} /></div>`}
  </li>`;
};

const parse = (text) => {
  try {
    const value = JSON.parse(text || "{}");
    return value && typeof value === "object" && !Array.isArray(value) ? value : { details: value };
  } catch {
    return { details: text };
  }
};

const who = (row) => row.principal?.replace(/^(user|service|agent):/, "") || row.user_id || (row.ip_address ? "a local caller" : "the director");

// surface is the client program, as it named itself.
const surface = (row) => {
  const agent = row.user_agent ?? "";
  if (/^Mozilla\//.test(agent)) return "a page";
  if (agent.startsWith("signalbox-cli")) return "the command line";
  if (row.principal?.startsWith("agent:")) return "an agent";
  return agent.split(/[\s/]/, 1)[0] || "the director itself";
};

const reasonOf = (details) => (typeof details.reason === "string" ? details.reason : "");

// subject links to the object of the action, if it has a page.
const subject = (row) => {
  const { resource = "", agent_name: agent } = row;
  if (resource.startsWith("queue-")) return html`<a class="id" href=${taskPath(resource)} title=${resource}>task ${shortId(resource)}</a>${agent && ` of ${agent}`}`;
  if (resource.startsWith("sched-")) return html`<a href=${schedulePath(resource)}>${parse(row.details).name || resource}</a>`;
  if (agent) return html`<a href=${agentPath(agent)}>${agent}</a>`;
  return resource || "–";
};

const said = (value) => (value === undefined || value === null || value === "" ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

// Change shows the values before and after, side by side.
const Change = ({ details }) => {
  const { before, after } = details;
  if (!before && !after) return null;
  const plain = (v) => (v && typeof v === "object" ? v : { value: v });
  const was = plain(before), is = plain(after);
  const keys = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
  return html`<table class="audit-change"><thead><tr><th scope="col">What</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
    <tbody>${keys.map((key) => html`<tr key=${key}><th scope="row">${key}</th><td>${said(was[key])}</td><td>${said(is[key])}</td></tr>`)}</tbody></table>`;
};

const Rest = ({ row, details }) => html`<dl class="facts">${[
  ["Row", String(row.seq)], ["At", full(row.at)], ["Kind", row.event_type], ["Principal", row.principal], ["On", row.resource], ["Agent", row.agent_name],
  ["From", row.ip_address], ["Program", row.user_agent],
  ...Object.entries(details).filter(([key]) => key !== "before" && key !== "after").map(([key, value]) => [key.replaceAll("_", " "), said(value)]),
  ["Hash", row.hash], ["Before it", row.prev],
].filter((pair) => pair[1]).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>`;
