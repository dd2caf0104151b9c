// Now: what needs a person, what runs, who waits behind whom and why.
import { html, useRef, useState } from "../lib/dom.js";
import { useLive } from "../lib/live.js";
import { useKeys } from "../lib/keys.js";
import { useMay } from "../lib/me.js";
import { cancelTask } from "../parts/cancel.js";
import { capacityPath, go, taskPath } from "../lib/router.js";
import { Accounts } from "../parts/accounts.js";
import { Why } from "../parts/why.js";
import { TaskLink } from "../parts/tasklink.js";
import { Attention } from "./now-attention.js";
import { inOrder, Lanes } from "./now-lanes.js";
import { Lines, Waiting } from "./now-lines.js";
import { Capacity, Pressure } from "./now-side.js";

export default () => {
  const agents = useLive((b) => b.agents);
  const may = useMay("cancel");
  const { picked, task, pick, move, explain } = usePicked(agents);
  useKeys({
    j: ["next waiting task", () => move(1)], k: ["waiting task before", () => move(-1)],
    Enter: ["open the picked task", () => (task ? go(taskPath(task.queue_id)) : false)],
    c: ["cancel the picked task", () => (task && may.ok ? (cancelTask(task), true) : false)],
    w: ["why the picked task waits", explain],
  });
  return html`<h1 class="unseen">Now</h1>
    <${Attention} />
    <div class="now">
      <div class="now-main">
        <${Lanes} picked=${picked} onPick=${pick} />
        <${Lines} picked=${picked} onPick=${pick} />
      </div>
      <aside class="now-side" aria-label="Accounts, capacity, queue, reasons and pressure">
        <${Accounts} most=${6} all=${capacityPath()} />
        <${Capacity} />
        <${Waiting} picked=${picked} onPick=${pick} />
        ${picked && html`<section class="card card-why" id="why-panel" tabindex="-1" aria-label="Why the picked task waits"><div class="card-body">
          <p class="small-text">Picked: <${TaskLink} id=${picked} /></p><${Why} key=${picked} id=${picked} /></div></section>`}
        <${Pressure} />
      </aside>
    </div>`;
};

// usePicked is the waiting task whose reasons are shown: the picked one, else the first
// in a line, for as long as it waits.
const usePicked = (agents) => {
  const [chosen, setChosen] = useState("");
  const fallback = useRef("");
  const queues = useLive((b) => b.queues);
  const waiting = [...inOrder(agents).map((e) => e.agent), ...queues.values()].flatMap((lane) => lane.line ?? []);
  const at = (id) => waiting.findIndex((t) => t.queue_id === id);
  if (at(fallback.current) < 0) fallback.current = waiting[0]?.queue_id ?? "";
  const picked = chosen || fallback.current;
  const move = (by) => {
    const to = waiting[Math.max(0, Math.min(waiting.length - 1, at(picked) + by))];
    if (to) setChosen(to.queue_id);
    return Boolean(to);
  };
  const explain = () => {
    const panel = document.getElementById("why-panel");
    panel?.scrollIntoView({ block: "nearest" });
    panel?.focus({ preventScroll: true });
    return Boolean(panel);
  };
  return { picked, task: waiting[at(picked)], pick: (task) => setChosen(task.queue_id), move, explain };
};
