// The audit log: who did what, how and why, with the values before and after. Newest
// first; each row is chained to the one before it.
import { html, useEffect, useState } from "../lib/dom.js";
import { get, query as queryOf } from "../lib/api.js";
import { go } from "../lib/router.js";
import { clock, full } from "../lib/time.js";
import { AdminsOnly } from "../parts/admins.js";
import { Command } from "../parts/command.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { ExportMenu } from "../parts/export.js";
import { Filter, filtered } from "../parts/listing.js";
import { useLoad } from "../parts/load.js";
import { Row } from "./audit-row.js";

const size = 100;
const kinds = ["agent_queue", "agent", "task", "queue", "schedule", "token", "user", "login", "terminal", "session", "access"];

export default ({ query }) => html`<${AdminsOnly} title="Audit" command=${(me) => (me.kind === "user" ? `signalbox users set ${me.id} --role admin` : "signalbox audit")}><${Log} query=${query} /></${AdminsOnly}>`;

// filtersOf reads the filters, which are in the address so that a view can be shared.
const filtersOf = (query) => Object.fromEntries(["event_type", "severity", "user_id", "agent", "action", "since"].map((name) => [name, query.get(name) ?? ""]));

const Log = ({ query }) => {
  const filters = filtersOf(query);
  const path = `/api/audit${queryOf({ newest: "true", limit: size, ...filters })}`;
  const { data, error, again, busy } = useLoad(path);
  const [older, setOlder] = useState({ rows: [], next: undefined, error: null }), [words, setWords] = useState("");
  useEffect(() => setOlder({ rows: [], next: undefined, error: null }), [data]);
  const set = (name, value) => go(`/ui/audit${queryOf({ ...filters, [name]: value })}`, { replace: true });
  const next = older.next === undefined ? data?.next : older.next;
  const more = async () => {
    try {
      const answer = await get(`${path}&after=${next}`);
      setOlder({ rows: [...older.rows, ...answer.rows], next: answer.next ?? 0, error: null });
    } catch (cause) {
      setOlder({ ...older, error: cause });
    }
  };
  const all = [...(data?.rows ?? []), ...older.rows], rows = filtered(all, words, textOf);
  const narrowed = Object.values(filters).some(Boolean);
  return html`
    <div class="page-head"><h1>Audit</h1><${Head} again=${again} busy=${busy} /></div>
    <${Filters} filters=${filters} set=${set} filtered=${narrowed} />
    <${ErrorBox} error=${error} retry=${again} />
    ${all.length > 0 && html`<div class="audit-tools"><${Filter} label="Find in the loaded rows" value=${words} set=${setWords} />${words && html`<span class="quiet">${rows.length} of the ${all.length} loaded rows</span>`}<${ExportMenu} list=${exported(path)} /></div>`}
    ${data && all.length === 0 && html`<${Empty} title=${narrowed ? "Nothing matches" : "No entries yet"} text=${narrowed ? "Remove a filter." : "Every change is recorded here: releases, cancels, logins, tokens and more."} command="signalbox audit" />`}
    ${rows.length > 0 && html`
      <div class="card audit">
        <div class="audit-row audit-names" aria-hidden="true"><span>When</span><span>Who</span><span>By way of</span><span>What</span><span>On</span><span>Result</span></div>
        <ul>${rows.map((row) => html`<${Row} key=${row.seq} row=${row} />`)}</ul>
      </div>`}
    <${ErrorBox} error=${older.error} retry=${more} />
    ${next > 0 && html`<p class="audit-more"><button type="button" onClick=${more}>Older</button></p>`}`;
};

const textOf = (row) => [row.principal, row.user_id, row.action, row.event_type, row.agent_name, row.resource, row.result, row.severity, row.ip_address, row.user_agent, row.details].join("\n");

// exported is the log for ExportMenu; the path has its filters.
const exported = (path) => ({
  name: "rows", keyOf: (row) => row.seq, fields: ["seq", "at", "event_type", "action", "principal", "user_id", "agent_name", "resource", "result", "severity", "ip_address", "user_agent", "details", "prev", "hash"],
  page: async (after, signal) => {
    const { rows, next } = await get(after ? `${path}&after=${after}` : path, { signal });
    return { items: rows, next };
  },
});

// Head is the end of the chain. A copy kept elsewhere shows later whether rows were
// removed.
const Head = ({ again, busy }) => {
  const { data } = useLoad("/api/audit/head", 15_000);
  const [open, setOpen] = useState(false);
  return html`<div class="buttons">
    ${data?.seq > 0 && html`<button type="button" class="plain" aria-expanded=${String(open)} onClick=${() => setOpen(!open)} title=${full(data.at)}>Chain: ${data.seq.toLocaleString()} rows, ${data.hash.slice(0, 12)}…</button>`}
    <button type="button" disabled=${busy} onClick=${again}>Reload</button>
    ${open && data?.seq > 0 && html`<div class="audit-head"><p>Row ${data.seq}${data.at && `, ${clock(data.at)}`}. Each row has the hash of the one before it. Keep this one elsewhere, and use it later to check whether rows were changed or removed from the end:</p>
      <${Command} text=${`signalbox audit verify --seq ${data.seq} --head ${data.hash}`} /></div>`}
  </div>`;
};

const Filters = ({ filters, set, filtered }) => html`
  <form class="audit-filters" role="search" aria-label="Filter the audit log" onSubmit=${(e) => e.preventDefault()}>
    <${Choice} name="event_type" label="Kind" value=${filters.event_type} set=${set} options=${kinds.map((k) => [k, k.replace("_", " ")])} />
    <${Choice} name="severity" label="Severity" value=${filters.severity} set=${set} options=${["info", "warning", "critical"].map((k) => [k, k])} />
    <${Choice} name="since" label="Since" value=${filters.since} set=${set} options=${[["1h", "1 hour"], ["24h", "1 day"], ["168h", "7 days"], ["720h", "30 days"]]} all="any time" />
    <${Typed} name="user_id" label="User" value=${filters.user_id} set=${set} />
    <${Typed} name="agent" label="Agent" value=${filters.agent} set=${set} />
    <${Typed} name="action" label="Action" value=${filters.action} set=${set} />
    ${filtered && html`<button type="button" class="plain" onClick=${() => go("/ui/audit", { replace: true })}>All of it</button>`}
  </form>`;

const Choice = ({ name, label, value, set, options, all = "all" }) => html`
  <div class="field"><label for=${`audit-${name}`}>${label}</label>
    <select id=${`audit-${name}`} value=${value} onChange=${(e) => set(name, e.target.value)}><option value="">${all}</option>${options.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}</select></div>`;

const Typed = ({ name, label, value, set }) => html`
  <div class="field"><label for=${`audit-${name}`}>${label}</label>
    <input id=${`audit-${name}`} value=${value} maxlength="128" autocomplete="off" autocapitalize="none" spellcheck=${false} onChange=${(e) => set(name, e.target.value.trim())} /></div>`;
