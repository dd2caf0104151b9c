// The lines that no single agent owns, and the queue: all waiting tasks in order, each
// with a cancel button.
import { html } from "../lib/dom.js";
import { useHold } from "../lib/hold.js";
import { useLive } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { searchPath, taskPath } from "../lib/router.js";
import { age, clock, full, range, useNow } from "../lib/time.js";
import { pause, resume } from "../parts/agentactions.js";
import { CancelButton } from "../parts/cancel.js";
import { Card } from "../parts/card.js";
import { Changes } from "../parts/changes.js";
import { pausedText } from "../parts/doing.js";
import { Menu } from "../parts/menu.js";
import { shortId, TaskLink } from "../parts/tasklink.js";
import { Line } from "./now-lane.js";

const about = (name) => {
  if (name === "work") return "any agent takes from it";
  if (name.startsWith("pool:")) return `agents of kind ${name.slice(5)}`;
  if (name === "commands") return "command tools that run as tasks";
  if (name === "calls") return "other tools that run as tasks";
  return "";
};

const byName = (a, b) => (a.name === "work" ? -1 : b.name === "work" ? 1 : a.name < b.name ? -1 : 1);

export const Lines = ({ picked, onPick }) => {
  const queues = useLive((b) => b.queues), pauses = useLive((b) => b.pauses);
  const all = pauses.find((p) => p.queue === "");
  const list = [...queues.values()].filter((q) => q.name === "work" || q.waiting > 0 || q.pause).sort(byName);
  if (list.length === 0) return null;
  return html`<${Card} title="Shared queues" note="agents take from these too" side=${html`<${Everything} all=${all} />`} name="lines">
    ${list.map((q) => html`<${Row} key=${q.name} queue=${q} picked=${picked} onPick=${onPick} />`)}
  </${Card}>`;
};

const Everything = ({ all }) => {
  const may = useMay("admin"), now = useNow();
  return html`${all && html`<span class="tone-warn">Everything is ${pausedText(all, now)} </span>`}
    <button type="button" class="small" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => (all ? resume("") : pause(""))}>${all ? "Resume everything" : "Pause everything…"}</button>`;
};

const Row = ({ queue, picked, onPick }) => {
  const now = useNow(), may = useMay("admin");
  const hold = useHold(queue.line ?? [], (t) => t.queue_id);
  const paused = queue.pause && queue.pause.queue !== "";
  return html`<article class="lane lane-line" aria-label=${`Line ${queue.name}`} ...${hold.props}>
    <div class="lane-name"><h3 class="cut"><a href=${searchPath(`queue:${queue.name} state:waiting`)}>${queue.name}</a></h3>
      <p class=${queue.pause ? "tone-warn small-text" : "quiet small-text"}>${queue.pause ? pausedText(queue.pause, now) : about(queue.name)}</p></div>
    <${Line} most=${6} hold=${hold} waiting=${queue.waiting} queue=${queue.name} now=${now} picked=${picked} onPick=${onPick} />
    <div class="lane-menu"><${Menu} label=${`Actions for ${queue.name}`} items=${[
      paused ? { text: "Resume", act: () => resume(queue.name), off: may.why } : { text: "Pause…", act: () => pause(queue.name), off: may.why },
    ]} /></div>
  </article>`;
};

const most = 6;

// oldest first; simultaneous ones by their places in line.
const byAge = (a, b) => (a.created_at === b.created_at ? (a.position || 0) - (b.position || 0) : a.created_at < b.created_at ? -1 : 1);

// Waiting is the queue as one list: the heads of all lines, oldest first.
export const Waiting = ({ picked, onPick }) => {
  const agents = useLive((b) => b.agents), queues = useLive((b) => b.queues), totals = useLive((b) => b.totals), now = useNow();
  const waiting = [...agents.values(), ...queues.values()].flatMap((lane) => lane.line ?? []).sort(byAge).slice(0, most);
  const hold = useHold(waiting, (t) => t.queue_id);
  const shown = hold.items;
  const note = totals ? `${totals.pending}${totals.max_size ? ` of ${totals.max_size}` : ""} waiting` : "";
  return html`<${Card} title="Queue" note=${note} name="queue">
    ${shown.length === 0 && html`<p class="card-body quiet">Nothing waits.</p>`}
    <ul class="waiting" ...${hold.props}>${shown.map(({ key, item, gone }) => html`<li key=${key} class=${gone ? "gone" : key === picked ? "is-picked" : ""}>
      <a class="cut waiting-text" dir="auto" href=${taskPath(item.queue_id)} title=${item.prompt_preview}>${item.mode === "tool" ? `${item.tool} ` : ""}${item.prompt_preview}</a>
      <p class="cut quiet small-text" title=${`${full(item.created_at)} · ${item.queue}`}>${item.position ? `#${item.position} in ` : ""}${item.queue.replace(/^agent:/, "")} · waits ${age(item.created_at, now)} · ${item.waiting_for?.until ? `until ${clock(item.waiting_for.until, now)}` : item.eta ? range(item.eta) : "start unknown"} · <${TaskLink} id=${item.queue_id} /></p>
      <span class="buttons waiting-do"><button type="button" class="small" aria-label=${`Why does ${shortId(item.queue_id)} wait?`} onClick=${() => onPick(item)}>Why?</button><${CancelButton} task=${item} /></span>
    </li>`)}</ul>
    ${(totals?.pending > shown.length || hold.changes > 0) && html`<p class="card-body">
      ${totals.pending > shown.length && html`<a href=${searchPath("state:waiting")}>All ${totals.pending} that wait</a> `}
      <${Changes} hold=${hold} /></p>`}
  </${Card}>`;
};
