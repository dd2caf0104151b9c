// Actions on many tasks: the picked ones, or all that match. They are counted first,
// and the action applies only to that number.
import { html } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { isEnded } from "../lib/board.js";
import { useMay } from "../lib/me.js";
import { confirm } from "../parts/confirm.js";
import { toast } from "../parts/toast.js";

export const BulkBar = ({ q, found, picked, clear }) => {
  const cancel = useMay("cancel"), retry = useMay("submit");
  const newest = new Map(found.tasks.map((t) => [t.queue_id, t]));
  const rows = [...picked.values()].map((t) => newest.get(t.queue_id) ?? t);
  const open = rows.filter((t) => !isEnded(t.state)).length, over = rows.length - open;
  if (rows.length > 0) {
    return html`<p class="bulk"><strong>${rows.length} selected</strong>
      <button type="button" class="small" disabled=${!cancel.ok || open === 0} title=${cancel.why || undefined} onClick=${() => bulk(queriesOf(rows, false), "cancel", clear)}>Cancel ${open}…</button>
      <button type="button" class="small" disabled=${!retry.ok || over === 0} title=${retry.why || undefined} onClick=${() => bulk(queriesOf(rows, true), "retry", clear)}>Retry ${over}…</button>
      <button type="button" class="small plain" onClick=${clear}>Clear selection</button></p>`;
  }
  // The bar stays when empty, so that it does not move the rows.
  if (!q || found.total === 0 || found.error) return html`<p class="bulk quiet">Select rows to cancel or retry several at once.</p>`;
  return html`<p class="bulk"><span class="quiet">All that match:</span>
    <button type="button" class="small" disabled=${!cancel.ok} title=${cancel.why || undefined} onClick=${() => bulk([q], "cancel", clear)}>Cancel…</button>
    <button type="button" class="small" disabled=${!retry.ok} title=${retry.why || undefined} onClick=${() => bulk([q], "retry", clear)}>Retry…</button></p>`;
};

const most = 25; // ids in one query, which has at most 1,000 bytes

// queriesOf returns queries for the picked tasks: the ended ones, or the others. The
// oldest end time spares the director a search of the whole history.
export const queriesOf = (rows, ended) => {
  const those = rows.filter((t) => isEnded(t.state) === ended), ids = those.map((t) => t.queue_id);
  const oldest = those.map((t) => t.ended_at).sort((a, b) => Date.parse(a) - Date.parse(b))[0];
  const which = ended ? `state:completed,failed,cancelled,timeout since:${oldest} ` : ""; // completed tasks are retried only if the query names the state
  return Array.from({ length: Math.ceil(ids.length / most) }, (_, i) => `${which}id:${ids.slice(i * most, (i + 1) * most).join(",")}`);
};

const words = { cancel: ["Cancel", "cancelled", "Waiting tasks leave their line; running ones are told to stop, and what they have done is not undone."], retry: ["Retry", "tried again", "Each gets a new task; the old ones stay as they ended. What completed is left alone, unless the query names it."] };

const number = (n) => n.toLocaleString("en");
const tasks = (n) => `${number(n)} ${n === 1 ? "task" : "tasks"}`;
const total = (counts) => counts.reduce((a, b) => a + b, 0);
const sum = (answers, name) => answers.reduce((n, a) => n + a[name], 0);

// send sends each query; expect are the counts that the user saw.
const send = async (queries, action, expect = []) => {
  const answers = [];
  for (const [i, query] of queries.entries()) {
    try {
      answers.push(await post("/api/queue/bulk", { query, action, expect: expect[i] }));
    } catch (error) {
      error.left = i; // the queries that succeeded are not repeated
      throw error;
    }
  }
  return answers;
};

// bulk counts, asks for confirmation, and acts on exactly that number. If the number has
// changed by then, it asks again.
export const bulk = async (queries, action, done, before, begun) => {
  const [verb, past, note] = words[action];
  let counts;
  try {
    counts = (await send(queries, action)).map((a) => a.count);
  } catch (error) {
    toast(`The tasks could not be counted: ${error.message}.`, "bad");
    return;
  }
  const count = total(counts);
  if (count === 0) {
    toast(`None of them can be ${past}.`);
    return;
  }
  const again = before !== undefined && `There were ${number(before)} when you were asked; ${begun ? "some of them are done, and these are left" : "nothing has been done yet"}.`;
  const which = queries[0].includes("id:queue-") ? "The tasks that you selected." : `All tasks that match: ${queries[0]}`;
  confirm({
    title: `${verb} ${tasks(count)}`, action: `${verb} ${tasks(count)}`, consequence: [again, which, note].filter(Boolean), danger: action === "cancel",
    onConfirm: async () => {
      try {
        report(await send(queries, action, counts), past);
        done();
      } catch (error) {
        if (error.status !== 409) throw error;
        bulk(queries.slice(error.left), action, done, total(counts.slice(error.left)), error.left > 0);
      }
    },
  });
};

const report = (answers, past) => {
  const failed = sum(answers, "failed"), why = answers.flatMap((a) => a.results ?? []).find((r) => r.message)?.message;
  toast(`${tasks(sum(answers, "done"))} ${past}${failed ? `; ${number(failed)} not: ${why ?? "the log of the director says why"}` : ""}.`, failed ? "bad" : "info");
};
