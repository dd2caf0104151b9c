// What is done to many tasks at once: the picked ones, or all that match. How
// many they are is counted first, and done only to as many.
import { html } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { isEnded } from "../lib/board.js";
import { useMay } from "../lib/me.js";
import { confirm } from "../parts/confirm.js";
import { toast } from "../parts/toast.js";

export const BulkBar = ({ q, found, picked, clear }) => {
  const cancel = useMay("cancel"), retry = useMay("submit");
  const rows = [...picked.values()];
  const open = rows.filter((t) => !isEnded(t.state)).length, over = rows.length - open;
  if (rows.length > 0) {
    return html`<p class="bulk"><strong>${rows.length} picked</strong>
      <button type="button" class="small" disabled=${!cancel.ok || open === 0} title=${cancel.why || undefined} onClick=${() => bulk(queryOf(rows, false), "cancel", clear)}>Cancel ${open}…</button>
      <button type="button" class="small" disabled=${!retry.ok || over === 0} title=${retry.why || undefined} onClick=${() => bulk(queryOf(rows, true), "retry", clear)}>Retry ${over}…</button>
      <button type="button" class="small plain" onClick=${clear}>Pick none</button></p>`;
  }
  // Without anything to do the bar stays: what comes and goes would move the rows.
  if (!q || found.total === 0 || found.error) return html`<p class="bulk quiet">Pick rows to cancel or retry several at once.</p>`;
  return html`<p class="bulk"><span class="quiet">All that match:</span>
    <button type="button" class="small" disabled=${!cancel.ok} title=${cancel.why || undefined} onClick=${() => bulk(q, "cancel", clear)}>Cancel…</button>
    <button type="button" class="small" disabled=${!retry.ok} title=${retry.why || undefined} onClick=${() => bulk(q, "retry", clear)}>Retry…</button></p>`;
};

// queryOf names the picked tasks: those that have ended, or those that have
// not.
const queryOf = (rows, ended) => "id:" + rows.filter((t) => isEnded(t.state) === ended).map((t) => t.queue_id).join(",");

const words = { cancel: ["Cancel", "cancelled", "What waits leaves its line; what runs is told to stop, and what it has done is not undone."], retry: ["Retry", "tried again", "For each a new task is made; the old ones stay as they ended."] };

// bulk counts, asks, and does it to just as many.
const bulk = async (q, action, done) => {
  const [verb, past, note] = words[action];
  let count;
  try {
    ({ count } = await post("/api/queue/bulk", { query: q, action }));
  } catch (error) {
    toast(`They could not be counted: ${error.message}.`, "bad");
    return;
  }
  if (count === 0) {
    toast(`None of them can be ${past}.`);
    return;
  }
  const tasks = `${count.toLocaleString("en")} ${count === 1 ? "task" : "tasks"}`;
  confirm({
    title: `${verb} ${tasks}`, action: `${verb} ${tasks}`, consequence: [q.startsWith("id:") ? "The tasks that you picked." : `All tasks that match: ${q}`, note],
    danger: action === "cancel",
    onConfirm: async () => {
      const answer = await post("/api/queue/bulk", { query: q, action, expect: count });
      toast(`${answer.done.toLocaleString("en")} ${past}${answer.failed ? `, ${answer.failed} not: ${answer.results?.find((r) => r.message)?.message ?? "see the log"}` : ""}.`, answer.failed ? "bad" : "info");
      done();
    },
  });
};
