// Capacity: each tool queue with its slots, their holders and calls, the line with its
// waits, and the limit of concurrent calls, which an admin can change.
import { html, cx, useEffect, useId, useState } from "../lib/dom.js";
import { post, put } from "../lib/api.js";
import { useHold } from "../lib/hold.js";
import { useLive } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { age, ahead, clock, full, span, took, useNow } from "../lib/time.js";
import { Accounts } from "../parts/accounts.js";
import { AgentLink } from "../parts/agentlink.js";
import { Bars } from "../parts/bars.js";
import { Budgets } from "../parts/budgets.js";
import { Changes } from "../parts/changes.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Gates } from "../parts/gates.js";
import { useAction, useLoad } from "../parts/load.js";
import { Resources } from "../parts/resources.js";
import { State } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";
import { toast } from "../parts/toast.js";

const byName = (a, b) => (a.name < b.name ? -1 : 1);
const most = 50; // shown waiters per line

export default ({ query }) => {
  const capacity = useLive((b) => b.capacity), ready = useLive((b) => b.ready);
  const named = query.get("name") ?? "";
  const hold = useHold([...capacity.values()].sort(byName), (q) => q.name);
  useEffect(() => { if (ready && named) document.getElementById(`queue-${named}`)?.scrollIntoView({ block: "center" }); }, [ready, named]);
  return html`<div class="page-head"><h1>Capacity</h1><p class="quiet"><${Changes} hold=${hold} /> ${sum([...capacity.values()])}</p></div>
    ${!ready && html`<p class="quiet" aria-busy="true">Connecting…</p>`}
    <${Gates} />
    <${Accounts} />
    <${Budgets} />
    <${Resources} />
    ${ready && capacity.size === 0 && html`<${Empty} title="No tool has a queue yet." text="A tool queue in signalbox.yaml limits how many calls run at once, over all agents. This lists the tools:" command="signalbox tools" />`}
    <div class="queues" ...${hold.props}>${hold.items.map(({ key, item, gone }) => html`<${Queue} key=${key} queue=${item} gone=${gone} named=${key === named} />`)}</div>
    <${Servers} />`;
};

const sum = (list) => {
  const total = (name) => list.reduce((n, q) => n + q[name], 0);
  return list.length ? `${total("in_use")} of ${total("concurrent")} slots in use, ${total("depth")} ${total("depth") === 1 ? "call waits" : "calls wait"}` : "";
};

const Queue = ({ queue: q, gone, named }) => {
  const now = useNow(), admin = useMay("admin");
  const drains = q.in_use > q.concurrent;
  const holders = q.holders ?? [], waiters = q.waiters ?? [];
  const pressed = q.in_use >= q.concurrent && q.depth > 0;
  return html`<section id=${`queue-${q.name}`} class=${cx("card", "queue", gone && "gone", named && "queue-named")} aria-labelledby=${`queue-${q.name}-name`}>
    <header class="card-head"><h2 id=${`queue-${q.name}-name`}>${q.name}</h2><span class=${pressed ? "card-side tone-warn" : "card-side"}>${q.in_use}/${q.concurrent}${q.depth > 0 ? ` · ${q.depth} ${q.depth === 1 ? "waits" : "wait"}` : ""}</span>
      <button type="button" disabled=${!admin.ok || gone} title=${admin.why || undefined} aria-label=${`Change the capacity of ${q.name}`} onClick=${() => change(q)}>Change…</button></header>
    <div class="card-body">
      <${Bars} used=${q.in_use} total=${Math.max(q.in_use, q.concurrent)} full=${pressed} label=${`${q.in_use} of ${q.concurrent} in use`} />
      <${Closed} queue=${q} now=${now} admin=${admin} />
      ${drains && html`<p class="note is-warn">${q.in_use} of ${q.concurrent} in use: drains. No call gets a slot until fewer than ${q.concurrent} are held.</p>`}
      <div class="queue-halves">
        <div><h3>Held by</h3>
          ${holders.length === 0 && html`<p class="quiet">nobody: a call starts at once</p>`}
          <ol class="calls">${holders.map((h, i) => html`<li key=${i}><${Call} call=${h} now=${now} /><${Lease} holder=${h} now=${now} /></li>`)}</ol></div>
        <div><h3>In line</h3>
          ${waiters.length === 0 && html`<p class="quiet">nobody</p>`}
          <ol class="calls">${waiters.slice(0, most).map((w) => html`<li key=${w.position}><b class="place">${w.position}</b><${Call} call=${w} now=${now} />${w.starts_at && Date.parse(w.starts_at) > now && html`<span class="quiet" title=${full(w.starts_at)}>may start ${ahead(w.starts_at, now)}</span>`}</li>`)}</ol>
          ${rest(q, waiters) > 0 && html`<p class="quiet">and ${rest(q, waiters)} more</p>`}</div>
      </div>
      <p class="quiet small-text">${rules(q)}</p>
    </div>
  </section>`;
};

// Closed says until when a queue is closed, as its server requested.
const Closed = ({ queue: q, now, admin }) => {
  const [run, busy, error] = useAction(async () => {
    await post(`/api/tools/queues/${encodeURIComponent(q.name)}/open`);
    toast(`${q.name} is open.`);
  });
  if (!q.closed || Date.parse(q.closed.until) <= now) return null;
  return html`<p class="note is-warn"><span title=${full(q.closed.until)}>${q.keys_closed ? `${q.keys_closed} of ${q.keys} keys closed` : "Closed"} until ${ahead(q.closed.until, now)}${q.closed.why ? `: ${q.closed.why}` : ""}.</span>
    <button type="button" disabled=${!admin.ok || busy} title=${admin.why || undefined} aria-label=${`Open ${q.name} now`} onClick=${run}>Open now</button></p>
    <${ErrorBox} error=${error} />`;
};

const change = (queue) => openDialog((close) => html`<${Change} queue=${queue} onClose=${close} />`);

const Change = ({ queue: q, onClose }) => {
  const [text, setText] = useState(String(q.concurrent));
  const id = useId();
  const [run, busy, error] = useAction(async () => {
    const { before, queue } = await put(`/api/tools/queues/${encodeURIComponent(q.name)}`, { concurrent: Number(text) });
    toast(`${q.name}: ${queue.concurrent} at once, before ${before}.`);
    onClose();
  });
  const foot = html`<button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${busy || !/^[0-9]+$/.test(text)}>${busy ? "Working…" : "Change"}</button>`;
  return html`<${Dialog} title=${`Capacity of ${q.name}`} onClose=${onClose} onSubmit=${run} foot=${foot}>
    <p><label for=${id}>Calls at once</label>
      <input id=${id} data-first="" type="number" min="1" max="1000000" value=${text} onInput=${(e) => setText(e.target.value.trim())} /></p>
    <p>Additional slots go to the calls in line at once. Surplus slots drain: a call keeps its slot, and no other gets one until fewer are held.</p>
    <p class="quiet">The setting applies until the director restarts${q.shared ? ", and only to this director: set it at each that shares the queue" : ""}. To keep it, write it under queues in signalbox.yaml.</p>
    <${ErrorBox} error=${error} />
  </${Dialog}>`;
};

const rest = (q, waiters) => Math.max(0, waiters.length - most) + (q.waiters_not_shown ?? 0);

// Call is a tool call: its caller, with a link to the task if a task makes it.
const Call = ({ call, now }) => html`<span class="call"><span>${call.queue_id && html`<${TaskLink} id=${call.queue_id} /> `}${call.agent ? html`<${AgentLink} name=${call.agent} />` : !call.queue_id && html`<span title=${call.session}>a session</span>`}</span>
  ${call.tool && html`<code class="cut">${call.tool}</code>`}${call.director && html`<span class="quiet cut">at ${call.director}</span>`}<span class="quiet" title=${full(call.since)}>${call.since ? age(call.since, now) : ""}</span></span>`;

const Lease = ({ holder: h, now }) => {
  if (!h.leased) return null;
  const behind = h.behind > 0 ? `, ${h.behind} of its calls wait for it` : "";
  return html`<p class="quiet small-text">kept between calls${h.idle ? ", no call now" : ""}${h.expires ? `, until ${clock(h.expires, now)} if it stays idle` : ""}${behind}</p>`;
};

const rate = (r) => r && `${r.n} in ${took(r.per_seconds)}${r.burst > 1 ? `, ${r.burst} at once after a pause` : ""}`;

const rules = (q) => [`${q.concurrent} at once${q.per_key ? ", each of its callers, sessions or values" : ""}${q.shared ? " over all directors" : ""}`, rate(q.rate), q.per_key && q.keys ? `${q.keys} keys in use` : "", q.max_wait_seconds ? `a call waits for at most ${span(q.max_wait_seconds)}` : "a call waits as long as it takes",
  q.max_waiters ? `at most ${q.max_waiters} in line` : "", q.lease_idle_seconds ? `a session keeps its slot for ${span(q.lease_idle_seconds)} between calls` : ""].filter(Boolean).join(" · ");

const faces = { ready: "idle", failed: "down", starting: "dispatching", stopped: "paused" };

// Servers lists the servers of the tools: if one has failed, its calls fail.
const Servers = () => {
  const { data, error, again } = useLoad("/api/tools", 15000);
  const now = useNow();
  if (error && error.status !== 404 && error.status !== 403) return html`<${ErrorBox} error=${error} title="The tools could not be loaded" retry=${again} />`;
  if (!data?.servers?.length) return null;
  return html`<section class="card servers" aria-labelledby="servers-head"><header class="card-head"><h2 id="servers-head">Tool servers</h2><span class="card-side">${data.tools.length} tools</span></header>
    <ul>${data.servers.map((s) => html`<li key=${s.name}><strong class="cut">${s.name}</strong><${State} state=${faces[s.state] ?? "idle"} text=${s.state} /><span class="quiet">${s.kind}, ${s.tools} ${s.tools === 1 ? "tool" : "tools"}${s.restarts > 0 ? `, started anew ${s.restarts}×` : ""}, for ${age(s.since, now)}</span>${s.error && html`<span class="tone-bad">${s.error}</span>`}<${ToolsOf} server=${s.name} tools=${data.tools} /></li>`)}</ul></section>`;
};

// ToolsOf lists the tools of a server, each with the queue for its calls.
const ToolsOf = ({ server, tools }) => {
  const own = tools.filter((t) => t.server === server);
  return own.length > 0 && html`<details><summary>Tools of ${server}</summary><ul>${own.map((t) => html`<li key=${t.name}><code>${t.name}</code>${t.queue && html`<span class="quiet">queue ${t.queue}</span>`}</li>`)}</ul></details>`;
};
