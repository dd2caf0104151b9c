// Now: what needs a person, what runs, who waits behind whom, and why.
import { html, useRef, useState } from "../lib/dom.js";
import { useLive } from "../lib/live.js";
import { useKeys } from "../lib/keys.js";
import { Card } from "../parts/card.js";
import { Empty } from "../parts/empty.js";
import { Why } from "../parts/why.js";
import { TaskLink } from "../parts/tasklink.js";
import { Attention } from "./now-attention.js";
import { Lane } from "./now-lane.js";
import { Lines, Waiting } from "./now-lines.js";
import { Capacity, Pressure } from "./now-side.js";

const byName = (a, b) => (a.name < b.name ? -1 : 1);

export default () => {
  const ready = useLive((b) => b.ready);
  const agents = useLive((b) => b.agents);
  const { picked, pick, next } = usePicked(agents);
  useKeys({ w: ["why the next waiting task waits", next] });
  const list = [...agents.values()].sort(byName);
  return html`<h1 class="unseen">Now</h1>
    <${Attention} />
    <div class="now">
      <div class="now-main">
        <${Card} title="Agents" side="running now · then in this order" name="lanes">
          ${!ready && html`<p class="card-body quiet" aria-busy="true">Connecting…</p>`}
          ${ready && list.length === 0 && html`<${NoAgents} />`}
          ${list.map((agent) => html`<${Lane} key=${agent.name} agent=${agent} picked=${picked} onPick=${pick} />`)}
        </${Card}>
        <${Lines} picked=${picked} onPick=${pick} />
        <${Waiting} picked=${picked} onPick=${pick} />
      </div>
      <aside class="now-side" aria-label="Capacity, pressure and reasons">
        <${Capacity} />
        <${Pressure} />
        ${picked && html`<section class="card card-why" id="why-panel" tabindex="-1" aria-label="Why the picked task waits"><div class="card-body">
          <p class="small-text">Picked: <${TaskLink} id=${picked} /></p><${Why} key=${picked} id=${picked} /></div></section>`}
      </aside>
    </div>`;
};

const NoAgents = () => html`<${Empty} title="No agents yet" text="Tasks wait until there is one. This starts one that costs nothing:" command="signalbox agent --kind demo --name demo" />`;

// usePicked is the waiting task whose reasons are shown: the one that was
// picked, else the first in a line, which stays as long as it waits.
const usePicked = (agents) => {
  const [chosen, setChosen] = useState("");
  const fallback = useRef("");
  const queues = useLive((b) => b.queues);
  const lines = [...[...agents.values()].sort(byName), ...queues.values()].flatMap((lane) => lane.line ?? []).map((t) => t.queue_id);
  if (!lines.includes(fallback.current)) fallback.current = lines[0] ?? "";
  const picked = chosen || fallback.current;
  const pick = (task) => setChosen(task.queue_id);
  const next = () => {
    if (lines.length === 0) return false;
    setChosen(lines[(lines.indexOf(picked) + 1) % lines.length]);
    requestAnimationFrame(() => document.getElementById("why-panel")?.focus());
    return true;
  };
  return { picked, pick, next };
};
