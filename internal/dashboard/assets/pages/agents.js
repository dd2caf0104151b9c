// The agents: what each does, its state, and two ages that distinguish a stuck agent
// from a slow one: of its last heartbeat, and of its run's last output.
import { cx, html, useState } from "../lib/dom.js";
import { query as queryOf } from "../lib/api.js";
import { useLive } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { useHold } from "../lib/hold.js";
import { agentPath, go, searchPath, taskPath } from "../lib/router.js";
import { age, full, since, span, useNow } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { AgentMenu, pause, resume } from "../parts/agentactions.js";
import { Bars } from "../parts/bars.js";
import { Changes } from "../parts/changes.js";
import { Empty } from "../parts/empty.js";
import { Filter, filtered, Listing, sorted } from "../parts/listing.js";
import { useLoad } from "../parts/load.js";
import { State, wordOf } from "../parts/state.js";
import { shortId, TaskLink } from "../parts/tasklink.js";
import { askTerminal } from "../parts/terminal.js";
import { Workspaces } from "../parts/workspaces.js";

const textOf = (a) => [a.name, a.kind, wordOf(a.face), a.work_dir, ...a.current.map((t) => t.prompt_preview)].join("\n");

export default ({ query }) => {
  const agents = useLive((board) => board.agents);
  const ready = useLive((board) => board.ready);
  const filter = query.get("filter") ?? "", sort = query.get("sort") ?? "name";
  const to = (change) => go(`/ui/agents${queryOf({ filter, sort: sort === "name" ? "" : sort, ...change })}`, { replace: true });
  const hold = useHold(sorted(filtered([...agents.values()], filter, textOf), columns, sort), (agent) => agent.name, false, `${sort} ${filter}`);
  const gone = new Set(hold.items.filter((entry) => entry.gone).map((entry) => entry.key));
  return html`
    <div class="page-head"><h1>Agents</h1>${agents.size > 1 && html`<${Filter} label="Filter agents" value=${filter} set=${(words) => to({ filter: words })} />`}<${Changes} hold=${hold} /><${All} /></div>
    ${ready && agents.size === 0 && html`<${Empty} title="No agents yet" text="An agent registers itself when it is started. This starts one that runs Claude Code here:" command=${`signalbox agent --name coder --kind claude --director ${location.origin}`} />`}
    ${agents.size > 0 && hold.items.length === 0 && html`<p class="quiet">No agent matches “${filter}”.</p>`}
    <div class="agents" ...${hold.props}>${hold.items.length > 0 && html`<${Listing} label="Agents" name="agents" columns=${columns} items=${hold.items.map((entry) => entry.item)} keyOf=${(a) => a.name}
      sort=${sort} onSort=${(by) => to({ sort: by === "name" ? "" : by })} rowOf=${(a) => ({ class: cx("agent-row", gone.has(a.name) && "gone"), "aria-label": `Agent ${a.name}` })} />`}</div>
    <${Workspaces} />
    <${Executors} />`;
};

// All pauses and resumes all queues.
const All = () => {
  const admin = useMay("admin");
  const paused = useLive((board) => board.pauses.find((p) => p.queue === ""));
  return html`<span class="page-tools">${paused && html`<span class="tone-warn">Everything is paused${paused.by && ` by ${paused.by}`}${paused.reason && `: ${paused.reason}`}</span>`}
    <button type="button" disabled=${!admin.ok} title=${admin.why || undefined} onClick=${() => (paused ? resume("") : pause(""))}>${paused ? "Resume everything" : "Pause everything…"}</button></span>`;
};

// The sort order of states: those that need a person first.
const faces = ["stuck", "closed", "withheld", "cancelling", "waiting for capacity", "running", "idle", "draining", "paused", "down"];

const columns = [
  { name: "name", label: "Agent", by: (a) => a.name, cell: (a) => html`<h2 class="cut"><${AgentLink} name=${a.name} /></h2><p class="cut quiet small-text" title=${a.work_dir}>${a.kind}${a.version && ` · version ${a.version}`}</p>` },
  { name: "state", label: "State", by: (a) => faces.indexOf(a.face), cell: (a) => html`<p><${State} state=${a.face} title=${a.face_text} /></p>${a.face_text && html`<p class="quiet small-text">${a.face_text}</p>`}` },
  { name: "now", label: "Runs", by: (a) => a.current[0]?.prompt_preview, cell: (a) => html`<${Runs} agent=${a} />` },
  { name: "clocks", label: "Signs of life", cell: (a) => html`<${Clocks} agent=${a} />` },
  { name: "slots", label: "Slots", falling: true, by: (a) => a.in_use, cell: (a) => html`<p>${a.in_use} of ${a.slots}</p><${Bars} used=${a.in_use} total=${a.slots} full=${false} />` },
  { name: "waiting", label: "Waiting", falling: true, by: (a) => a.waiting, cell: (a) => (a.waiting > 0 ? html`<a href=${searchPath(`queue:agent:${a.name} state:waiting`)}>${a.waiting}</a>` : html`<span class="quiet">0</span>`) },
  { name: "do", label: html`<span class="unseen">Actions</span>`, cell: (a) => html`<${AgentMenu} agent=${a} onTerminal=${() => { askTerminal(a.name); go(agentPath(a.name)); }} />` },
];

const most = 3; // listed tasks per agent

const Runs = ({ agent }) => (agent.current.length === 0 ? html`<p class="quiet">${idleText(agent)}</p>` : html`
  ${agent.current.slice(0, most).map((task) => html`<p class="cut" key=${task.queue_id}><a dir="auto" href=${taskPath(task.queue_id)} title=${task.prompt_preview}>${task.prompt_preview || shortId(task.queue_id)}</a>${task.mode === "bypass" && html` <span class="quiet">isolated</span>`}</p>`)}
  ${agent.current.length > most && html`<p class="small-text"><a href=${agentPath(agent.name)}>${agent.current.length - most} more</a></p>`}`);

const idleText = (agent) => {
  if (agent.state === "down") return "not connected";
  if (agent.pause) return "takes nothing while it is paused";
  return agent.idle_at ? `idle ${age(agent.idle_at)}` : "idle";
};

// Clocks: a heartbeat shows that the agent lives, not that its run proceeds. The director
// decides whether it is late: the stream sends no times of punctual heartbeats of idle
// agents, and seldom those of many busy ones.
export const Clocks = ({ agent }) => {
  const now = useNow();
  const busy = agent.current.some((task) => task.state !== "pending");
  const silent = agent.last_heard && (agent.state === "down" || agent.face_text?.startsWith("not heard from"));
  const counts = busy || silent;
  return html`
    <dl class="clocks">
      <div class=${cx(silent && "is-late")}><dt>Last heartbeat</dt><dd title=${counts ? full(agent.last_heard) : undefined}>${!agent.last_heard ? "never" : counts ? `${span(since(agent.last_heard, now))} ago` : "on time"}</dd></div>
      <div><dt>Last progress</dt><dd title=${full(agent.last_progress)}>${!busy ? "nothing runs" : agent.last_progress ? `${span(since(agent.last_progress, now))} ago` : "nothing printed yet"}</dd></div>
      <div><dt>Typical run</dt><dd title="the middle half of its last 40 runs; unknown below five">${usual(agent.typical)}</dd></div>
    </dl>`;
};

// usual formats the typical duration of runs: the middle half of them.
export const usual = (typical) => {
  if (!typical) return "unknown yet";
  const low = span(typical.low_seconds), high = span(typical.high_seconds);
  return typical.high_seconds < 1 ? "under a second" : low === high ? low : `${low} to ${high}`;
};

// Executors explains the director's own executors, which are not agents.
const Executors = () => {
  const { data } = useLoad("/api/agents", 15_000);
  const [open, setOpen] = useState(false);
  if (!data?.executors?.length) return null;
  return html`
    <section class="card executors" aria-labelledby="executors-head">
      <header class="card-head"><h2 id="executors-head">The director’s own executors</h2>
        <button type="button" class="plain" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? "Hide" : "What are they?"}</button></header>
      ${open && html`<p class="card-body">Tool calls can be tasks too. The director runs those itself, in slots of its own. An executor is not an agent: no tasks can be submitted to it, and it has no line of its own to clear.</p>`}
      ${data.executors.map((one) => html`
        <div class="executor" key=${one.name}><strong>${one.name}</strong> <span>${one.in_use} of ${one.slots} slots</span> <span class="quiet">${one.waiting} waiting</span>
          ${(one.running ?? []).map((task) => html`<${TaskLink} key=${task.queue_id} id=${task.queue_id} /> `)}</div>`)}
    </section>`;
};
