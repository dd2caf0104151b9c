// The results of a task's checks, with the output of those that did not pass.
import { html, useId } from "../lib/dom.js";
import { took } from "../lib/time.js";
import { Copy } from "../parts/copy.js";
import { withoutEscapes } from "../parts/lines.js";
import { Text } from "../parts/text.js";

const words = { passed: "passed", failed: "failed", timeout: "ran out of time", unavailable: "could not be run" };
const tones = { passed: "tone-good", failed: "tone-bad", timeout: "tone-bad", unavailable: "tone-warn" };

const summary = (checks) => (checks.rounds > 0 ? `after ${checks.rounds} ${checks.rounds === 1 ? "round" : "rounds"}` : "");

export const Checks = ({ checks }) => {
  const id = useId();
  const state = checks.state === "unavailable" ? "unchecked" : checks.state;
  return html`
    <section class="card" aria-labelledby=${id}>
      <header class="card-head"><h2 id=${id}>Checks</h2><span class=${tones[checks.state] ?? "quiet"}>${state}</span> <span class="quiet">${summary(checks)}</span></header>
      <div class="card-body">
        ${checks.message && html`<${Text} text=${checks.message} />`}
        ${(checks.results ?? []).map((one) => html`<${Check} key=${one.name} check=${one} />`)}
      </div>
    </section>`;
};

const Check = ({ check }) => {
  const text = check.state !== "passed" && check.output ? withoutEscapes(check.output) : "";
  return html`
    <div class="check">
      <p><strong dir="auto">${check.name}</strong> <span class=${tones[check.state] ?? "quiet"}>${words[check.state] ?? check.state}</span>
        <span class="quiet"> ${[check.exit_code !== undefined && `exit ${check.exit_code}`, took(check.seconds)].filter(Boolean).join(" · ")}</span>
        ${text && html` <${Copy} text=${text} label=${`Copy the output of ${check.name}`} />`}</p>
      ${text && html`<${Text} text=${text} lines=${12} />`}
    </div>`;
};
