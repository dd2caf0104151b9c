// The attempts of a piece of work side by side: what it is a retry of, and what
// was made of it since.
import { cx, html, useEffect, useState } from "../lib/dom.js";
import { get, query } from "../lib/api.js";
import { clock, full, span } from "../lib/time.js";
import { isEnded } from "../lib/board.js";
import { AgentLink } from "../parts/agentlink.js";
import { State } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";

const most = 12; // in each direction

export const Attempts = ({ task }) => {
  const [chain, setChain] = useState([]);
  useEffect(() => {
    const over = new AbortController();
    find(task, over.signal).then((list) => { if (!over.signal.aborted) setChain(list); }, () => {}); // what is not found is left out
    return () => over.abort();
  }, [task.queue_id, task.retry_of, isEnded(task.state)]);
  const all = chain.map((one) => (one.queue_id === task.queue_id ? { ...one, ...task } : one));
  if (all.length < 2) return null;
  const first = all[0];
  return html`
    <section class="card" aria-labelledby="attempts-head">
      <header class="card-head"><h2 id="attempts-head">Tries, side by side</h2><span class="quiet">${all.length}</span></header>
      <ol class="tries">${all.map((one, i) => html`
        <li key=${one.queue_id} class=${cx("try", one.queue_id === task.queue_id && "is-this")} aria-current=${one.queue_id === task.queue_id ? "true" : undefined}>
          <p class="try-head"><strong>${i + 1}</strong> <${TaskLink} id=${one.queue_id} /> <${State} state=${one.state} /></p>
          <dl class="facts">
            <dt>Created</dt><dd title=${full(one.created_at)}>${clock(one.created_at)}</dd>
            <dt>Agent</dt><dd>${one.agent ? html`<${AgentLink} name=${one.agent} />` : "none yet"}</dd>
            <dt>Ran</dt><dd>${ran(one)}</dd>
            ${one.model && html`<dt>Model</dt><dd>${one.model}</dd>`}
            ${i > 0 && html`<dt>Edited</dt><dd>${edits(one, first)}</dd>`}
          </dl>
          ${one.message && html`<p class="try-said">${one.message}</p>`}
        </li>`)}</ol>
    </section>`;
};

const ran = (task) => (task.started_at && task.ended_at ? span((Date.parse(task.ended_at) - Date.parse(task.started_at)) / 1000) : "–");

const edits = (task, first) => [
  (task.prompt ?? task.prompt_preview) !== (task.prompt ? first.prompt : first.prompt_preview) && "prompt",
  (task.model ?? "") !== (first.model ?? "") && "model",
  (task.timeout_seconds ?? 0) !== (first.timeout_seconds ?? 0) && "time limit",
].filter(Boolean).join(", ") || "nothing";

// find walks back to the first try, and on to those that were made of any of
// them. A task names what it is a retry of; what was made of it is looked for
// among what is newer.
const find = async (task, signal) => {
  const chain = [task];
  for (let of = task.retry_of; of && chain.length < most; of = chain[0].retry_of) {
    const before = await get(`/api/queue/${encodeURIComponent(of)}`, { signal }).catch(() => null); // pruned by now
    if (!before) break;
    chain.unshift(before);
  }
  if (!isEnded(task.state)) return chain; // only what has ended is retried
  const [waiting, ended] = await Promise.all([
    get("/api/queue?limit=1000", { signal }), get(`/api/history${query({ since: task.ended_at, limit: 1000 })}`, { signal }),
  ]);
  const newer = [...waiting.tasks, ...ended.tasks].filter((t) => t.retry_of);
  const known = new Set(chain.map((t) => t.queue_id));
  for (let found = true; found && chain.length < 2 * most;) {
    found = false;
    for (const one of newer) {
      if (known.has(one.queue_id) || !known.has(one.retry_of)) continue;
      known.add(one.queue_id);
      chain.push(one);
      found = true;
    }
  }
  return chain.sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
};
