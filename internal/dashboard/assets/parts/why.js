// Why shows why a task does not run: its gates in order, in the director's words.
import { cx, html, useCallback } from "../lib/dom.js";
import { isEnded, isWaiting } from "../lib/board.js";
import { useOnTask } from "../lib/live.js";
import { local, range } from "../lib/time.js";
import { useLoad } from "./load.js";
import { AgentLink } from "./agentlink.js";
import { Cure } from "./cure.js";
import { ErrorBox } from "./errorbox.js";
import { TaskLink } from "./tasklink.js";

const every = 5000; // ms: waits and ages grow

// titled is false if the page itself has the heading.
export const Why = ({ id, titled = true }) => {
  const { data: why, error, again } = useLoad(`/api/queue/${encodeURIComponent(id)}/why`, every);
  useOnTask(id, useCallback(() => { again(); }, [again]));
  return html`
    <section class="why" aria-labelledby=${titled ? "why-head" : undefined} aria-label=${titled ? undefined : "Why it is not running"}>
      ${titled && html`<h2 class="why-head" id="why-head">${heading(why)}</h2>`}
      ${error && html`<${ErrorBox} error=${error} retry=${again} />`}
      ${!why && !error && html`<p class="quiet">Asking…</p>`}
      ${why && html`<${Standing} why=${why} />`}
      ${why?.gates?.length > 0 && html`<ol class="why-gates">${why.gates.map((gate) => html`<${Gate} key=${gate.name} gate=${gate} />`)}</ol>`}
    </section>`;
};

const heading = (why) => {
  if (!why || isWaiting(why.state)) return "Why is it not running?";
  if (why.state === "cancelling") return "It is being cancelled";
  return isEnded(why.state) ? "It has ended" : "It is running";
};

const Standing = ({ why }) => {
  if (why.state !== "pending") return html`<p class="why-summary">${local(why.summary)}</p>`;
  return html`<p class="why-summary">${why.eta
    ? `Starts ${startsIn(why.eta)} (from the last ${why.eta.runs} runs)`
    : `When it starts is unknown: ${why.eta_unknown}.`}</p>`;
};

// startsIn formats an estimate, to follow "starts".
export const startsIn = (eta) => {
  const text = range(eta);
  return text.startsWith("about ") ? "in " + text : "within seconds";
};

const Gate = ({ gate }) => html`
  <li class=${cx("why-gate", gate.ok ? "is-open" : "is-shut")}>
    <span class="why-mark" aria-hidden="true">${gate.ok ? "✓" : "✗"}</span>
    <div>
      <p class="why-text"><span class="unseen">${gate.ok ? "Passed: " : "Not passed: "}</span>${local(gate.text)}</p>
      ${gate.detail && html`<p class="why-detail">${gate.detail}</p>`}
      ${!gate.ok && (gate.task_id || gate.agent) && html`<p class="why-links">
        ${gate.task_id && html`<${TaskLink} id=${gate.task_id} /> `}
        ${gate.agent && html`<${AgentLink} name=${gate.agent} />`}</p>`}
      ${gate.cure && html`<${Cure} text=${gate.cure} />`}
    </div>
  </li>`;
