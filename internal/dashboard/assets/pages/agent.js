// One agent: its running tasks, line, conversations, last runs, and a terminal.
import { html, useRef, useState } from "../lib/dom.js";
import { useLive } from "../lib/live.js";
import { money, tokens } from "../lib/money.js";
import { useMay } from "../lib/me.js";
import { useSubject } from "../lib/place.js";
import { searchPath, usagePath } from "../lib/router.js";
import { age, full, since, span, useNow } from "../lib/time.js";
import { AgentMenu, forceRelease, pause, resume } from "../parts/agentactions.js";
import { Bars } from "../parts/bars.js";
import { Card } from "../parts/card.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useLoad } from "../parts/load.js";
import { State } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";
import { takeAsked, Terminal } from "../parts/terminal.js";
import { Clocks } from "./agents.js";
import { Runs } from "./agent-runs.js";
import { Sessions } from "./agent-sessions.js";

export default ({ name }) => {
  const agent = useLive((board) => board.agents.get(name));
  const ready = useLive((board) => board.ready);
  useSubject(name);
  if (agent) return html`<${Whole} key=${agent.name} agent=${agent} />`;
  return ready ? html`<${Missing} name=${name} />` : html`<p class="quiet">Loading ${name}…</p>`;
};

// Missing reads the agent from the API: the board leaves out agents that the user may
// not see, and the error says so.
const Missing = ({ name }) => {
  const { error } = useLoad(`/api/agents/${encodeURIComponent(name)}/queue`);
  return html`<div class="page-head"><h1>Agent ${name}</h1></div>
    ${error ? html`<${ErrorBox} error=${error} title="There is no such agent here" />` : html`<p class="quiet">It is not on the board yet.</p>`}
    <p><a href="/ui/agents">All agents</a></p>`;
};

const Whole = ({ agent }) => {
  const [shell, setShell] = useState(() => takeAsked(agent.name));
  const again = useRef(null);
  const may = useMay("terminal");
  // An open terminal stays on the page, and shows how it ended.
  const opened = useRef(false);
  opened.current = shell && (opened.current || may.ok);
  const close = () => { setShell(false); again.current?.focus(); };
  return html`
    <header class="page-head">
      <div class="head-title">
        <h1>${agent.name}</h1>
        <p class="head-line"><${State} state=${agent.face} /> <span class="quiet">${about(agent)}</span></p>
      </div>
      <div class="task-actions" ref=${(el) => { again.current = el?.querySelector("button"); }}><${AgentMenu} agent=${agent} onTerminal=${() => setShell(true)} /></div>
    </header>
    <${Notes} agent=${agent} />
    ${shell && (opened.current ? html`<${Terminal} agent=${agent.name} onClose=${close} />` : html`<p class="note is-warn">${may.why}</p>`)}
    <div class="columns">
      <div class="stack">
        <${Running} agent=${agent} />
        <${Line} agent=${agent} />
        <${Runs} name=${agent.name} typical=${agent.typical} />
      </div>
      <aside class="stack" aria-label="About this agent">
        <${Card} title="Two clocks"><div class="card-body"><${Clocks} agent=${agent} /></div></${Card}>
        <${Facts} agent=${agent} />
        <${Spent} name=${agent.name} />
        <${Sessions} name=${agent.name} />
      </aside>
    </div>`;
};

const about = (agent) => [agent.kind, agent.version, agent.url].filter(Boolean).join(" · ");

// Notes say what keeps the agent from working, and what to do.
const Notes = ({ agent }) => {
  const admin = useMay("admin"), release = useMay("release");
  const p = agent.pause;
  return html`
    ${p && html`<p class="note is-warn"><strong>Paused${p.queue === "" ? " with everything else" : ""}${p.by && ` by ${p.by}`} for ${age(p.since)}${p.until && `, until ${full(p.until)}`}.</strong> ${p.reason}
      <button type="button" disabled=${!admin.ok} title=${admin.why || undefined} onClick=${() => resume(p.queue)}>Resume</button></p>`}
    ${["stuck", "withheld", "cancelling", "down", "closed"].includes(agent.face) && html`<div class="note is-bad">
      <p><strong>${agent.face_text || agent.message || "It needs attention."}</strong></p>
      <p>${agent.current.length > 0 ? "When the slot lease expires, its running tasks are given up automatically. To continue earlier, release its slots." : agent.face === "down" ? "Start it again on its own computer: signalbox agent" : "It clears by itself when the agent says that it is idle."}
        ${(agent.current.length > 0 || agent.face === "withheld") && html` <button type="button" class="danger" disabled=${!release.ok} title=${release.why || undefined} onClick=${() => forceRelease(agent.name)}>Force release…</button>`}</p></div>`}
    ${!p && agent.face === "idle" && agent.waiting > 0 && html`<p class="note is-warn">${agent.waiting} wait for it though it is idle: the first of them says why. <button type="button" class="plain" onClick=${() => pause(`agent:${agent.name}`)}>Pause…</button></p>`}`;
};

const Running = ({ agent }) => {
  const now = useNow();
  const lane = agent.current.filter((t) => t.mode !== "bypass"), beside = agent.current.filter((t) => t.mode === "bypass");
  return html`
    <${Card} title="Running" side=${html`<span class="quiet">${agent.in_use} of ${agent.slots}</span> <${Bars} used=${agent.in_use} total=${agent.slots} full=${false} />`}>
      ${lane.length === 0 && html`<p class="card-body quiet">Nothing. ${agent.face === "idle" ? "The next task starts at once." : ""}</p>`}
      <ul class="list">${lane.map((task) => html`<${Run} key=${task.queue_id} task=${task} now=${now} />`)}</ul>
    </${Card}>
    ${(agent.isolated_slots > 0 || beside.length > 0) && html`
      <${Card} title="Isolated runs, beside the queue" side=${html`<span class="quiet">${beside.length} of ${agent.isolated_slots ?? 0}</span>`}>
        ${beside.length === 0 && html`<p class="card-body quiet">None. They take no slot and do not see the conversation.</p>`}
        <ul class="list">${beside.map((task) => html`<${Run} key=${task.queue_id} task=${task} now=${now} />`)}</ul>
      </${Card}>`}`;
};

const Run = ({ task, now }) => html`
  <li class="run-row">
    <p><${TaskLink} id=${task.queue_id} /> <${State} state=${task.state} /> <span class="cut">${task.prompt_preview}</span></p>
    <p class="quiet">${task.started_at ? `${span(since(task.started_at, now))}` : "being handed over"} · ${task.by || task.source}${task.call ? ` · ${callText(task.call)}` : ""}${task.last_progress ? ` · printed ${span(since(task.last_progress, now))} ago` : ""}</p>
  </li>`;

const callText = (call) => (call.waiting ? `waits for ${call.capacity}: ${call.in_use} of ${call.concurrent} in use` : `calls ${call.tool}`);

const Line = ({ agent }) => {
  const now = useNow();
  return html`
    <${Card} title="Its own queue, in order" side=${agent.waiting > agent.line.length ? html`<a href=${searchPath(`queue:agent:${agent.name} state:waiting`)}>all ${agent.waiting}</a>` : html`<span class="quiet">${agent.waiting}</span>`}>
      ${agent.line.length === 0 && html`<p class="card-body quiet">It is empty. The agent also takes from its pool, and from work, the queue of all agents.</p>`}
      <ol class="list">${agent.line.map((task, i) => html`
        <li key=${task.queue_id} class="run-row"><p><b>${task.position || i + 1}</b> <${TaskLink} id=${task.queue_id} /> <span class="cut">${task.prompt_preview}</span></p>
          <p class="quiet">waits ${span(since(task.created_at, now))} · ${task.by || task.source}</p></li>`)}</ol>
    </${Card}>`;
};

const Facts = ({ agent }) => html`
  <${Card} title="Facts"><dl class="facts card-body">
    ${[["Kind", agent.kind], ["Address", agent.url], ["Came by", sources[agent.source] ?? agent.source], ["Works in", agent.work_dir && html`<bdi>${agent.work_dir}</bdi>`], ["Fences", agent.fencing ? "yes: it stops an old run before it takes a new one" : "no: after a loss its slot waits until it reports idle"],
      ["Terminal", agent.terminal ? openText(agent.terminals) : "not offered"], ["Version", agent.version]].filter((row) => row[1]).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}
  </dl></${Card}>`;

// Spent is what its runs of the last 30 days used, if they reported it.
const Spent = ({ name }) => {
  const { data } = useLoad(`/api/usage?agent=${encodeURIComponent(name)}`, 60_000);
  const t = data?.total;
  if (!t?.runs) return null;
  return html`<${Card} title="Last 30 days" name="spent" side=${html`<a href=${usagePath(name)}>Usage</a>`}><dl class="facts card-body">
    ${[["Cost", money(t.cost_usd)], ["Tokens", `${tokens(t.input_tokens)} in, ${tokens(t.output_tokens)} out`], ["Runs", `${t.runs.toLocaleString("en")}${t.failed ? `, ${t.failed} failed` : ""}`]].filter((row) => row[1]).map(([what, value]) => html`<dt key=${what}>${what}</dt><dd>${value}</dd>`)}
  </dl></${Card}>`;
};

const sources = { config: "the configuration", registered: "its own registration", discovered: "discovery", child: "signalbox up, which started it" };
const openText = (terminals = []) => (terminals.length === 0 ? "offered, none open" : terminals.map((t) => `open by ${t.by} for ${age(t.since)}`).join(", "));
