// A tool task: the tool, its arguments, and its answer.
import { html, useMemo } from "../lib/dom.js";
import { isEnded } from "../lib/board.js";
import { useMay } from "../lib/me.js";
import { useLoad } from "../parts/load.js";
import { Copy } from "../parts/copy.js";
import { withoutEscapes } from "../parts/lines.js";
import { Text } from "../parts/text.js";

export const ToolCall = ({ task }) => {
  const may = useMay("tool");
  const ended = isEnded(task.state);
  const { data, error } = useLoad(ended && may.ok ? `/api/tools/tasks/${encodeURIComponent(task.queue_id)}` : "");
  const given = useMemo(() => pretty(task.arguments), [task.arguments]);
  const answer = useMemo(() => said(data?.result), [data]);
  return html`
    <section class="card" aria-labelledby="tool-head">
      <header class="card-head"><h2 id="tool-head">Call of <code>${task.tool}</code></h2>${given && html`<${Copy} text=${given} label="Copy the arguments" />`}</header>
      <div class="card-body">
        <h3>Arguments</h3>
        ${given ? html`<${Text} text=${given} />` : html`<p class="quiet">None to show. Secret arguments are erased when the task ends.</p>`}
        ${task.metadata && html`<h3>Metadata</h3><${Text} text=${pretty(task.metadata)} />`}
        ${ended && html`<h3>Answer</h3>${!may.ok ? html`<p class="quiet">${may.why}</p>`
          : error ? html`<p class="quiet">It is not shown: ${error.message}.</p>`
          : answer ? html`<${Text} text=${answer} lines=${40} />`
          : html`<p class="quiet">${data?.error || "The tool gave no answer."}</p>`}`}
      </div>
    </section>`;
};

const pretty = (value) => (value === undefined || value === null ? "" : JSON.stringify(value, null, 2));

// said is the answer of a tool as text: its text blocks, and the others as JSON.
const said = (result) => {
  if (!result) return "";
  const blocks = Array.isArray(result.content) ? result.content : [];
  return withoutEscapes(blocks.map((block) => (block.type === "text" ? block.text : pretty(block))).join("\n"));
};
