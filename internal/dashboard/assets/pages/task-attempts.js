// The tries of the same work side by side: what a task is a retry of, and its own retries.
import { cx, html, useEffect, useState } from "../lib/dom.js";
import { get, query } from "../lib/api.js";
import { current } from "../lib/live.js";
import { clock, full, took } from "../lib/time.js";
import { isEnded } from "../lib/board.js";
import { AgentLink } from "../parts/agentlink.js";
import { State } from "../parts/state.js";
import { TaskLink } from "../parts/tasklink.js";

const most = 12; // in each direction

export const Attempts = ({ task }) => {
  const [chain, setChain] = useState([]);
  useEffect(() => {
    const over = new AbortController();
    find(task, over.signal).then((list) => { if (!over.signal.aborted) setChain(list); }, () => {}); // without an answer nothing is shown
    return () => over.abort();
  }, [task.queue_id, task.retry_of, isEnded(task.state)]);
  const all = chain.map((one) => (one.queue_id === task.queue_id ? { ...one, ...task } : one));
  if (all.length < 2) return null;
  const of = new Map(all.map((one) => [one.queue_id, one]));
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
            ${of.has(one.retry_of) && html`<dt>Edited</dt><dd>${edits(one, of.get(one.retry_of))}</dd>`}
          </dl>
          ${one.message && html`<p class="try-said">${one.message}</p>`}
        </li>`)}</ol>
    </section>`;
};

const ran = (task) => (task.started_at && task.ended_at ? took((Date.parse(task.ended_at) - Date.parse(task.started_at)) / 1000) : "–");

const edits = (task, before) => [
  task.prompt !== before.prompt && "prompt", task.model !== before.model && "model", task.timeout_seconds !== before.timeout_seconds && "time limit",
].filter(Boolean).join(", ") || "nothing";

// find walks back to the first try, and forward to the retries of each. A task names what it
// is a retry of; its own retries are among the newer tasks: those in flight are on the board,
// the others in the history.
const find = async (task, signal) => {
  const whole = (id) => get(`/api/queue/${encodeURIComponent(id)}`, { signal }).catch(() => null); // pruned by now
  const chain = [task];
  for (let of = task.retry_of; of && chain.length < most; of = chain[0].retry_of) {
    const before = await whole(of);
    if (!before) break;
    chain.unshift(before);
  }
  const known = new Set(chain.map((t) => t.queue_id));
  const newer = isEnded(task.state) ? await since(task, signal) : []; // only ended tasks are retried
  for (let found = true; found && chain.length < 2 * most;) {
    const next = newer.filter((t) => known.has(t.retry_of) && !known.has(t.queue_id));
    found = next.length > 0;
    for (const t of next) known.add(t.queue_id);
    chain.push(...(await Promise.all(next.map((t) => whole(t.queue_id)))).filter(Boolean));
  }
  return chain.sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
};

const since = async (task, signal) => {
  const ended = await get(`/api/history${query({ since: task.ended_at, limit: 1000 })}`, { signal });
  return [...current().tasks.values(), ...ended.tasks].filter((t) => t.retry_of);
};
