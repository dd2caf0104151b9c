// A lane: an agent, its running tasks, then its waiting tasks in order. Its height is
// fixed, so that a start in one lane does not move the others.
import { html, cx, useMedia } from "../lib/dom.js";
import { useHold } from "../lib/hold.js";
import { useMay } from "../lib/me.js";
import { searchPath, taskPath } from "../lib/router.js";
import { age, full, local, range, useNow } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { AgentMenu, forceRelease } from "../parts/agentactions.js";
import { Changes } from "../parts/changes.js";
import { Chip } from "../parts/chip.js";
import { doingOf, pausedText, whoOf } from "../parts/doing.js";
import { State, toneOf } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";

export const Lane = ({ agent, gone, picked, onPick }) => {
  const now = useNow();
  const hold = useHold(agent.line ?? [], (t) => t.queue_id);
  const most = useMedia("(min-width: 1400px), (max-width: 760px)") ? 3 : 2;
  const [task, ...others] = agent.current ?? [];
  return html`<article class=${cx("lane", gone && "gone")} aria-label=${`Agent ${agent.name}`} ...${hold.props}>
    <div class="lane-name">
      <h3 class="cut"><${AgentLink} name=${agent.name} /></h3>
      <p class="quiet small-text cut">${[agent.kind, `${agent.in_use} of ${agent.slots}`, agent.face === "running" && agent.face_text && "account not open"].filter(Boolean).join(" · ")}</p>
    </div>
    ${task ? html`<${Block} task=${task} others=${others.length} agent=${agent} now=${now} />` : html`<${Idle} text=${idleText(agent, now)} />`}
    <${Line} hold=${hold} waiting=${agent.waiting} queue=${`agent:${agent.name}`} now=${now} picked=${picked} onPick=${onPick} most=${most} />
    <div class="lane-state"><${State} state=${agent.face} text=${agent.face.startsWith("waiting for ") ? "waiting" : undefined} title=${local(agent.face_text || agent.face)} /><${Release} agent=${agent} /></div>
    <div class="lane-menu"><${AgentMenu} agent=${agent} /></div>
  </article>`;
};

// Line shows at most most chips of a line in one row, and the number of the others.
export const Line = ({ hold, waiting, queue, now, picked, onPick, most }) => {
  const { items } = hold, shown = items.slice(0, most), rest = waiting - shown.filter((e) => !e.gone).length;
  return html`<div class="chips lane-chips">
    ${shown.map(({ key, item, gone }, i) => html`<${Chip} key=${key} task=${item} place=${item.position || i + 1} gone=${gone} now=${now} picked=${key === picked} onPick=${onPick} />`)}
    ${rest > 0 && html`<a class="chip chip-more" href=${searchPath(`queue:${queue} state:waiting`)} title=${`all that waits in ${queue}`}>+${rest}</a>`}
    ${items.length === 0 && waiting === 0 && html`<span class="quiet small-text">nothing waits</span>`}
    <${Changes} hold=${hold} />
  </div>`;
};

const Block = ({ task, others, agent, now }) => {
  const doing = doingOf(task, agent, now), tone = doing?.tone === "quiet" || !doing ? toneOf(task.state) : doing.tone;
  const who = whoOf(task), began = task.started_at ?? task.created_at;
  return html`<div class=${cx("block", `block-${tone}`)}>
    <p class="block-title"><a class="cut" dir="auto" href=${taskPath(task.queue_id)} title=${task.prompt_preview}>${task.prompt_preview}</a>${others > 0 && html`<a class="block-more" href=${searchPath(`agent:${agent.name} state:working,dispatching,cancelling`)}>and ${others} more</a>`}</p>
    <p class="cut small-text quiet"><span title=${full(began)}>${age(began, now)}</span>${doing && html` · <span class=${`tone-${doing.tone}`} title=${doing.text}>${doing.text}</span>`}${task.mode === "bypass" && " · isolated"}${who && ` · ${who}`} · <${TaskLink} id=${task.queue_id} /></p>
  </div>`;
};

const Idle = ({ text }) => html`<p class="block block-none cut" title=${text}>${text}</p>`;

const idleText = (agent, now) => {
  const waits = agent.waiting > 0 ? `; ${agent.waiting} ${agent.waiting === 1 ? "task waits" : "tasks wait"}` : "";
  if (agent.face === "down") return `Not connected${agent.last_heard ? ` for ${age(agent.last_heard, now)}` : ""}${waits}`;
  if (agent.pause) return `Not taking work, ${pausedText(agent.pause, now)}${waits}`;
  if (["withheld", "closed"].includes(agent.face)) return `${agent.face_text || agent.message || "Not offered work"}${waits}`;
  if (agent.face === "waiting for account") return `A${local(agent.face_text).slice(1)}${waits}`;
  const typical = agent.typical ? ` · a run takes ${range(agent.typical)}` : "";
  return `${agent.idle_at ? `Idle ${age(agent.idle_at, now)}` : "Idle"} — next task starts at once${typical}`;
};

// Release is a visible button if a release is the cure.
const Release = ({ agent }) => {
  const may = useMay("release");
  const needed = agent.face === "stuck" || (["withheld", "down"].includes(agent.face) && agent.current?.length > 0);
  if (!needed) return null;
  return html`<button type="button" class="small" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => forceRelease(agent.name)}>Force release…</button>`;
};
