// Beside the lanes: the shared tool queues, and the load of the last half hour.
import { html, useMemo, useState } from "../lib/dom.js";
import { useHold } from "../lib/hold.js";
import { useLive } from "../lib/live.js";
import { capacityPath, go, searchPath } from "../lib/router.js";
import { age, clock, span, useNow } from "../lib/time.js";
import { Bars } from "../parts/bars.js";
import { Card } from "../parts/card.js";
import { Chart } from "../parts/chart.js";

const most = 8; // tool queues

// busiest: those with a line first, then those in use.
const busiest = (a, b) => (b.depth > 0) - (a.depth > 0) || (b.in_use > 0) - (a.in_use > 0) || (a.name < b.name ? -1 : 1);

export const Capacity = () => {
  const capacity = useLive((b) => b.capacity), ready = useLive((b) => b.ready);
  const hold = useHold([...capacity.values()].sort(busiest).slice(0, most), (q) => q.name);
  if (!ready) return null;
  return html`<${Card} title="Shared capacity" name="capacity">
    ${capacity.size === 0 && html`<p class="card-body quiet">No tool has a queue. A queue in the configuration limits how many calls of a tool run at once.</p>`}
    <div ...${hold.props}>${hold.items.map(({ key, item }) => html`<${Queue} key=${key} queue=${item} />`)}</div>
    ${capacity.size > most && html`<p class="card-body"><a href=${capacityPath()}>All ${capacity.size}</a></p>`}
  </${Card}>`;
};

const Queue = ({ queue: q }) => {
  const now = useNow();
  const full = q.in_use >= q.concurrent, waits = q.depth > 0;
  const text = waits ? `${q.in_use}/${q.concurrent} · ${q.depth} ${q.depth === 1 ? "waits" : "wait"}, oldest ${age(q.waiters?.[0]?.since, now)}` : `${q.in_use}/${q.concurrent}`;
  return html`<div class="slots">
    <p class="slots-head"><a class="cut" href=${capacityPath(q.name)}>${q.name}</a><span class=${full && waits ? "tone-warn" : "quiet small-text"}>${text}</span></p>
    <${Bars} used=${q.in_use} total=${q.concurrent} full=${full && waits} label=${`${q.in_use} of ${q.concurrent} slots in use, ${q.depth} waiting`} />
    ${full && waits && html`<p class="quiet small-text">held by ${holders(q.holders ?? [])}</p>`}
  </div>`;
};

// holders names the holders, each once.
const holders = (list) => {
  const count = new Map();
  for (const h of list) {
    const name = h.agent || h.tool || "someone";
    count.set(name, (count.get(name) ?? 0) + 1);
  }
  return [...count].map(([name, n]) => (n > 1 ? `${name} ×${n}` : name)).join(", ");
};

const series = [{ label: "waiting", tone: "warn", fill: "warn-soft" }, { label: "running", tone: "busy" }]; // distinguishable by shape too

export const Pressure = () => {
  const [at, point] = useState(null);
  const samples = useLive((b) => b.pressure), totals = useLive((b) => b.totals);
  const data = useMemo(() => [samples.map((s) => Date.parse(s.at) / 1000), samples.map((s) => s.pending), samples.map((s) => s.running)], [samples]);
  if (samples.length < 2) {
    return html`<${Card} title="Pressure, last 30 min"><p class="card-body quiet">No data yet: it starts within half a minute.</p></${Card}>`;
  }
  const { pending, running, oldest_age_seconds: oldest } = totals; // the same as in all other figures: a sample is up to ten seconds old
  const label = `The last 30 minutes: ${pending} waiting now, at most ${Math.max(...data[1])}; ${running} running now, at most ${Math.max(...data[2])}; the oldest waits ${span(oldest)}`;
  return html`<${Card} title="Pressure, last 30 min" side=${html`<span class="quiet small-text" title="shows the tasks of that time">drag to filter</span>`} name="pressure">
    <div class="card-body">
      <${Chart} data=${data} series=${series} label=${label} height=${130} onSelect=${filter} onPoint=${point} />
      <${Legend} now=${totals} then=${at === null ? null : samples[at]} />
    </div>
  </${Card}>`;
};

// Legend shows the present values, or those under the pointer.
const Legend = ({ now, then }) => {
  const { pending, running, oldest_age_seconds: oldest } = then ?? now;
  return html`<p class="legend"><span><i class="tone-warn filled"></i>${pending} waiting</span><span><i class="tone-busy"></i>${running} running</span>
    ${pending > 0 && html`<span>oldest ${span(oldest)}</span>`}${then && html`<span>at ${clock(then.at)}</span>`}</p>`;
};

const second = (ms) => new Date(ms).toISOString().slice(0, 19) + "Z";
const filter = (from, to) => go(searchPath(`since:${second(from)} until:${second(to)}`));
