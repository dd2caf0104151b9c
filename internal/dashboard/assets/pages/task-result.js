// The result of an ended task, and late reports.
import { html } from "../lib/dom.js";
import { money } from "../lib/money.js";
import { clock, full, took } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { Copy } from "../parts/copy.js";
import { withoutEscapes } from "../parts/lines.js";
import { Markdown } from "../parts/markdown.js";
import { Text } from "../parts/text.js";

export const Result = ({ task }) => {
  const result = task.result;
  // A failed task without an answer is explained elsewhere.
  if (!result || (!result.output && task.state !== "completed")) return null;
  return html`
    <section class="card" aria-labelledby="result-head">
      <header class="card-head"><h2 id="result-head">Result</h2><span class="quiet">${figures(result)}</span>
        ${result.output && html`<${Copy} text=${result.output} label="Copy the result" />`}</header>
      <div class="card-body">${result.output
        ? html`<${Answer} task=${task} text=${withoutEscapes(result.output)} />`
        : html`<p class="quiet">It gave no answer.</p>`}</div>
    </section>`;
};

// Answer is the rendered answer of an agent; command output stays as it is.
const Answer = ({ task, text }) => (task.state === "completed" && /^#|[`*|]|^ {0,3}[-+] |\]\(/m.test(text)
  ? html`<${Markdown} text=${text} />`
  : html`<${Text} text=${text} lines=${40} />`);

export const figures = (result) => [
  took(result.duration_seconds),
  result.exit_code !== undefined && `exit ${result.exit_code}`,
  result.error_type,
  result.token_usage && `${result.token_usage.input.toLocaleString()} tokens in, ${result.token_usage.output.toLocaleString()} out`,
  money(result.cost_usd),
  result.tool_count > 0 && `${result.tool_count} tool ${result.tool_count === 1 ? "call" : "calls"}`,
].filter(Boolean).join(" · ");

// Stale shows reports of executions after they had lost their slot.
export const Stale = ({ list }) => html`
  <section class="card" aria-labelledby="stale-head">
    <header class="card-head"><h2 id="stale-head">Late reports</h2></header>
    <div class="card-body">
      <p class="quiet">These executions had lost their slot when they answered. Their reports are kept but change nothing.</p>
      ${list.map((one) => html`
        <div class="stale" key=${one.fence}>
          <p><strong>${one.state}</strong> by <${AgentLink} name=${one.agent} />, <span title=${full(one.at)}>${clock(one.at)}</span>, fence ${one.fence}${one.message && `: ${one.message}`}</p>
          ${(one.result?.cost_usd > 0 || one.result?.token_usage) && html`<p class="quiet">${figures(one.result)}</p>`}
          ${one.result?.output && html`<${Text} text=${withoutEscapes(one.result.output)} lines=${8} />`}
        </div>`)}
    </div>
  </section>`;
