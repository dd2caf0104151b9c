// A lane: an agent, what runs there, then what waits for it, in order.
import { html, cx } from "../lib/dom.js";
import { useHold } from "../lib/hold.js";
import { useMay } from "../lib/me.js";
import { searchPath } from "../lib/router.js";
import { age, full, range, useNow } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { AgentMenu, forceRelease } from "../parts/agentactions.js";
import { Changes } from "../parts/changes.js";
import { Chip } from "../parts/chip.js";
import { doingOf, pausedText, whoOf } from "../parts/doing.js";
import { State, toneOf } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";


export const Lane = ({ agent, picked, onPick }) => {
  const now = useNow();
  const hold = useHold(agent.line ?? [], (t) => t.queue_id);
  const current = agent.current ?? [];
  return html`<article class="lane" aria-label=${`Agent ${agent.name}`} ...${hold.props}>
    <div class="lane-name">
      <h3 class="cut"><${AgentLink} name=${agent.name} /></h3>
      <${State} state=${agent.face} text=${faceText(agent)} title=${agent.face_text} />
      ${agent.slots > 1 && html`<p class="quiet small-text">${agent.in_use} of ${agent.slots} slots</p>`}
    </div>
    <div class="lane-blocks">
      ${current.map((task) => html`<${Block} key=${task.queue_id} task=${task} agent=${agent} now=${now} />`)}
      ${current.length === 0 && html`<p class="block block-none">${idleText(agent, now)}</p>`}
    </div>
    <${Line} hold=${hold} waiting=${agent.waiting} queue=${`agent:${agent.name}`} now=${now} picked=${picked} onPick=${onPick} />
    <div class="lane-menu"><${Release} agent=${agent} /><${AgentMenu} agent=${agent} /></div>
  </article>`;
};

const faceText = (agent) => (agent.face === "paused" && agent.pause?.by ? `paused by ${agent.pause.by}` : undefined);

// Line are the chips of a line, at most so many, and what else is in it.
export const Line = ({ hold, waiting, queue, now, picked, onPick, most = 3 }) => {
  const { items } = hold, shown = items.slice(0, most), rest = waiting - shown.filter((e) => !e.gone).length;
  return html`<div class="chips">
    ${shown.map(({ key, item, gone }, i) => html`<${Chip} key=${key} task=${item} place=${item.position || i + 1} gone=${gone} now=${now} picked=${key === picked} onPick=${onPick} />`)}
    ${rest > 0 && html`<a class="chip" href=${searchPath(`queue:${queue} state:pending`)} title=${`all that waits in ${queue}`}>+${rest}</a>`}
    ${items.length === 0 && waiting === 0 && html`<span class="quiet small-text">queue empty</span>`}
    <${Changes} hold=${hold} />
  </div>`;
};

const Block = ({ task, agent, now }) => {
  const doing = doingOf(task, agent, now), tone = doing?.tone === "quiet" || !doing ? toneOf(task.state) : doing.tone;
  const who = whoOf(task), began = task.started_at ?? task.created_at;
  return html`<div class=${cx("block", `block-${tone}`)}>
    <p class="cut" title=${task.prompt_preview}><${TaskLink} id=${task.queue_id} /> ${task.prompt_preview}</p>
    <p class="cut small-text quiet"><span title=${full(began)}>${age(began, now)}</span>${task.mode === "bypass" && " · isolated"}${who && ` · ${who}`}${doing && html` · <span class=${`tone-${doing.tone}`} title=${doing.text}>${doing.text}</span>`}</p>
  </div>`;
};

const idleText = (agent, now) => {
  const waits = agent.waiting > 0 ? `; ${agent.waiting} ${agent.waiting === 1 ? "task waits" : "tasks wait"}` : "";
  if (agent.face === "down") return `Not connected${agent.last_heard ? ` for ${age(agent.last_heard, now)}` : ""}${waits}`;
  if (agent.pause) return `Not taking work, ${pausedText(agent.pause, now)}${waits}`;
  if (["withheld", "closed"].includes(agent.face)) return `${agent.face_text || agent.message || "Not offered work"}${waits}`;
  const typical = agent.typical ? ` · a run takes ${range(agent.typical)}` : "";
  return `${agent.idle_at ? `Idle ${age(agent.idle_at, now)}` : "Idle"} — next task starts at once${typical}`;
};

// Release stands in the open where it is the way out.
const Release = ({ agent }) => {
  const may = useMay("release");
  const needed = agent.face === "stuck" || (["withheld", "down"].includes(agent.face) && agent.current?.length > 0);
  if (!needed) return null;
  return html`<button type="button" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => forceRelease(agent.name)}>Force release…</button>`;
};
