// The agents: what each does, how it is, and the two clocks that tell a stuck
// one from a slow one: when it was last heard, and when its run last printed.
import { cx, html, useState } from "../lib/dom.js";
import { useLive } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { useHold } from "../lib/hold.js";
import { agentPath, go } from "../lib/router.js";
import { hasWords, sorted } from "../lib/sift.js";
import { age, full, since, span, useNow } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { AgentMenu, pause, resume } from "../parts/agentactions.js";
import { Bars } from "../parts/bars.js";
import { Changes } from "../parts/changes.js";
import { Empty } from "../parts/empty.js";
import { useLoad } from "../parts/load.js";
import { Sift, useSift } from "../parts/sift.js";
import { State } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";
import { askTerminal } from "../parts/terminal.js";
import { groupOf, textOf } from "./now-lanes.js";

const byName = (a, b) => (a.name < b.name ? -1 : 1);

const orders = [["", "By name"], ["state", "By state"], ["kind", "By kind"], ["-running", "Most running"], ["-waiting", "Most waiting"], ["-typical", "Longest usual run"]];
const states = ["working", "waiting", "paused", "down", "idle"];
const values = {
  state: (a) => (a.face === "stuck" ? -1 : states.indexOf(groupOf(a))), kind: (a) => a.kind, running: (a) => a.in_use, waiting: (a) => a.waiting, typical: (a) => a.typical?.high_seconds,
};

export default () => {
  const agents = useLive((board) => board.agents);
  const ready = useLive((board) => board.ready);
  const { filter, sort } = useSift();
  const list = sorted([...agents.values()].filter((agent) => hasWords(textOf(agent), filter)).sort(byName), sort, values);
  const hold = useHold(list, (agent) => agent.name, false, `${sort} ${filter}`);
  return html`
    <div class="page-head"><h1>Agents</h1>${agents.size > 0 && html`<${Sift} what="agents" orders=${orders} />`}<${Changes} hold=${hold} /><${All} /></div>
    ${agents.size > 0 && list.length === 0 && html`<p class="quiet">No agent matches “${filter}”.</p>`}
    ${ready && agents.size === 0 && html`<${Empty} title="No agents yet" text="An agent registers itself when it is started. This starts one that runs Claude Code here:" command=${`signalbox agent --name coder --kind claude --director ${location.origin}`} />`}
    <div class="agents" ...${hold.props}>${hold.items.map(({ key, item, gone }) => html`<${Row} key=${key} agent=${item} gone=${gone} />`)}</div>
    <${Executors} />`;
};

// All pauses and resumes everything.
const All = () => {
  const admin = useMay("admin");
  const paused = useLive((board) => board.pauses.find((p) => p.queue === ""));
  return html`<span class="page-tools">${paused && html`<span class="tone-warn">Everything is paused${paused.by && ` by ${paused.by}`}${paused.reason && `: ${paused.reason}`}</span>`}
    <button type="button" disabled=${!admin.ok} title=${admin.why || undefined} onClick=${() => (paused ? resume("") : pause(""))}>${paused ? "Resume everything" : "Pause everything…"}</button></span>`;
};

const Row = ({ agent, gone }) => html`
  <article class=${cx("card", "agent-row", gone && "gone")} aria-label=${`Agent ${agent.name}`}>
    <div class="agent-name">
      <h2><${AgentLink} name=${agent.name} /></h2>
      <p><${State} state=${agent.face} title=${agent.face_text} /></p>
      <p class="quiet">${agent.kind}${agent.version && ` ${agent.version}`}</p>
    </div>
    <div class="agent-now">
      ${agent.face_text && html`<p class="agent-why">${agent.face_text}</p>`}
      ${agent.current.length === 0 && html`<p class="quiet">${idleText(agent)}</p>`}
      ${agent.current.map((task) => html`<p class="agent-task" key=${task.queue_id}><${TaskLink} id=${task.queue_id} /> <span class="cut">${task.prompt_preview}</span>
        ${task.mode === "bypass" && html`<span class="quiet">isolated</span>`}${agent.current.length > 1 && html`<span class="quiet task-clock">${task.last_progress ? `printed ${age(task.last_progress)} ago` : "nothing printed"}</span>`}</p>`)}
    </div>
    <${Clocks} agent=${agent} />
    <div class="agent-room">
      <p>${agent.in_use} of ${agent.slots} ${agent.slots === 1 ? "slot" : "slots"}</p>
      <${Bars} used=${agent.in_use} total=${agent.slots} full=${false} />
      <p class="quiet">${agent.waiting === 0 ? "its own queue is empty" : `${agent.waiting} in its own queue`}</p>
    </div>
    ${gone ? html`<p class="quiet">gone</p>` : html`<${AgentMenu} agent=${agent} onTerminal=${() => { askTerminal(agent.name); go(agentPath(agent.name)); }} />`}
  </article>`;

const idleText = (agent) => {
  if (agent.state === "down") return "not connected";
  if (agent.pause) return "takes nothing while it is paused";
  return agent.idle_at ? `idle ${age(agent.idle_at)}` : "idle";
};

// Clocks: a heartbeat says that the agent lives, not that its run goes on. Whether it
// is late the director says: of an idle agent the time of the last one does not come
// while it is on time, of many at work it comes seldom.
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

// usual says how long runs take: the middle half of them.
export const usual = (typical) => {
  if (!typical) return "unknown yet";
  const low = span(typical.low_seconds), high = span(typical.high_seconds);
  return typical.high_seconds < 1 ? "under a second" : low === high ? low : `${low} to ${high}`;
};

// Executors explains the director's own, which are no agents.
const Executors = () => {
  const { data } = useLoad("/api/agents", 15_000);
  const [open, setOpen] = useState(false);
  if (!data?.executors?.length) return null;
  return html`
    <section class="card executors" aria-labelledby="executors-head">
      <header class="card-head"><h2 id="executors-head">The director’s own executors</h2>
        <button type="button" class="plain" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? "Fold" : "What are they?"}</button></header>
      ${open && html`<p class="card-body">Calls of tools can be tasks too. The director runs those itself, in slots of its own. An executor is no agent: nothing can be submitted to it, and it has no line of its own to clear.</p>`}
      ${data.executors.map((one) => html`
        <div class="executor" key=${one.name}><strong>${one.name}</strong> <span>${one.in_use} of ${one.slots} slots</span> <span class="quiet">${one.waiting} waiting</span>
          ${(one.running ?? []).map((task) => html`<${TaskLink} key=${task.queue_id} id=${task.queue_id} /> `)}</div>`)}
    </section>`;
};
