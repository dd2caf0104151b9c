// The lanes of all agents: first those that work, then those whose tasks wait though
// nothing runs, then those that take no tasks, are idle or down. If there are many
// agents, these last groups are folded.
import { html, useRef, useState, useStore } from "../lib/dom.js";
import { useHold } from "../lib/hold.js";
import { useLive } from "../lib/live.js";
import { lanesOpen } from "../lib/prefs.js";
import { age, since, useNow } from "../lib/time.js";
import { Card } from "../parts/card.js";
import { Changes } from "../parts/changes.js";
import { Empty } from "../parts/empty.js";
import { Icon } from "../parts/icon.js";
import { Filter, filtered } from "../parts/listing.js";
import { wordOf } from "../parts/state.js";
import { Lane } from "./now-lane.js";

const groups = ["working", "waiting", "paused", "idle", "down"];
const folded = new Set(["paused", "idle", "down"]);
const few = 8; // up to so many agents all have a lane, without a filter
const most = 20; // lanes of a group, until the user unfolds it
const linger = 15; // seconds that an agent keeps its place after its last task: the next may follow

// groupOf is the group of an agent's state.
export const groupOf = (agent) => {
  if (agent.current?.length) return "working";
  if (agent.waiting > 0) return "waiting";
  if (agent.face === "down") return "down";
  return agent.face === "idle" ? "idle" : "paused";
};

// placeOf is the group in which its lane is shown.
const placeOf = (agent, now) => {
  const group = groupOf(agent);
  return group === "idle" && agent.idle_at && since(agent.idle_at, now) < linger ? "working" : group;
};

const urgent = { stuck: 0 };
const order = (a, b) => groups.indexOf(a.group) - groups.indexOf(b.group) || (urgent[a.agent.face] ?? 1) - (urgent[b.agent.face] ?? 1) || (a.agent.name < b.agent.name ? -1 : 1);

// inOrder returns all agents in the order of their lanes.
export const inOrder = (agents, now) => [...agents.values()].map((agent) => ({ agent, group: placeOf(agent, now) })).sort(order);

const textOf = ({ agent }) => [agent.name, agent.kind, wordOf(agent.face), ...[...(agent.current ?? []), ...(agent.line ?? [])].map((t) => t.prompt_preview)].join("\n");

export const Lanes = ({ picked, onPick }) => {
  const ready = useLive((b) => b.ready), agents = useLive((b) => b.agents), now = useNow();
  const [filter, setFilter] = useState("");
  const list = filtered(inOrder(agents, now), filter, textOf);
  const hold = useHold(list, ({ agent }) => agent.name);
  const places = useRef(new Map()); // the group of each agent while the list is held
  if (!hold.held) places.current = new Map(list.map(({ agent, group }) => [agent.name, group]));
  const many = agents.size > few;
  const lanes = Map.groupBy(hold.items, ({ key, item }) => places.current.get(key) ?? item.group);
  const filterBox = many && html`<${Filter} label="Filter agents" value=${filter} set=${setFilter} />`;
  return html`<${Card} title="Agents" note=${countsOf(agents)} side=${html`<${Changes} hold=${hold} />${filterBox}`} name="lanes">
    ${!ready && html`<p class="card-body quiet" aria-busy="true">Connecting…</p>`}
    ${ready && agents.size === 0 && html`<${Empty} title="No agents yet" text="Tasks wait until there is one. This starts one that costs nothing:" command=${`signalbox agent --kind demo --name demo --director ${location.origin}`} />`}
    <div ...${hold.props}>${groups.map((group) => lanes.has(group) && html`<${Group} key=${group} name=${group} entries=${lanes.get(group)} fold=${many && filter.trim() === "" && folded.has(group)} now=${now} picked=${picked} onPick=${onPick} />`)}</div>
    ${ready && agents.size > 0 && list.length === 0 && html`<p class="card-body quiet">No agent matches “${filter}”.</p>`}
  </${Card}>`;
};

const countsOf = (agents) => {
  const counts = Object.groupBy(agents.values(), groupOf);
  return groups.filter((group) => counts[group]).map((group) => `${counts[group].length} ${group}`).join(" · ");
};

// Group shows the lanes of a group, or one line for a folded group.
const Group = ({ name, entries, fold, now, picked, onPick }) => {
  const chosen = useStore(lanesOpen).split(" ").includes(name);
  const [all, setAll] = useState(false);
  const open = !fold || chosen;
  const shown = !open ? [] : all ? entries : entries.slice(0, most);
  const toggle = () => lanesOpen.set(chosen ? lanesOpen.get().split(" ").filter((n) => n !== name).join(" ") : `${lanesOpen.get()} ${name}`.trim());
  return html`${fold && html`<button type="button" class="fold" aria-expanded=${String(open)} onClick=${toggle}><${Icon} name=${open ? "down" : "next"} /><b>${entries.length} ${name}</b> <span class="cut quiet">${aboutOf(name, entries, now)}</span></button>`}
    ${shown.map(({ key, item, gone }) => html`<${Lane} key=${key} agent=${item.agent} gone=${gone} picked=${picked} onPick=${onPick} />`)}
    ${open && shown.length < entries.length && html`<button type="button" class="fold" onClick=${() => setAll(true)}>Show all ${entries.length} ${name}</button>`}`;
};

const aboutOf = (group, entries, now) => {
  if (group !== "down") return `${entries.slice(0, 12).map(({ key }) => key).join(", ")}${entries.length > 12 ? ", …" : ""}`;
  const newest = entries.map(({ item }) => item.agent.last_heard ?? "").sort().at(-1);
  return newest ? `last heard ${age(newest, now)} ago${entries.length > 1 ? " and more" : ""}` : "never heard from";
};
