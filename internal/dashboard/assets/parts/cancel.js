// Cancel and retry of one task in a list. A running task needs confirmation.
import { html } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { isEnded, isWaiting } from "../lib/board.js";
import { newKey } from "../lib/api.js";
import { useMay } from "../lib/me.js";
import { confirm } from "./confirm.js";
import { shortId } from "./tasklink.js";
import { toast } from "./toast.js";

const send = async (task) => {
  const answer = await post(`/api/queue/${encodeURIComponent(task.queue_id)}/cancel`);
  const id = shortId(task.queue_id);
  if (answer.state === "cancelled") toast(`${id} is cancelled.`);
  else if (isEnded(answer.state)) toast(`${id} had ended before: ${answer.state}.`);
  else toast(`${id}: the agent is told to stop, and has not confirmed yet.`);
};

// cancelTask cancels a waiting task at once, because it can be retried without loss.
// For a running task it asks first.
export const cancelTask = async (task) => {
  if (isEnded(task.state) || task.state === "cancelling") return;
  if (!isWaiting(task.state)) {
    confirm({
      title: `Cancel ${shortId(task.queue_id)}`, action: "Cancel it", onConfirm: () => send(task),
      consequence: [`“${task.prompt_preview}”`, `${task.agent || "Its agent"} is told to stop it. What it has done so far is not undone; what it has printed stays.`],
    });
    return;
  }
  try {
    await send(task);
  } catch (error) {
    toast(`${shortId(task.queue_id)} is not cancelled: ${error.message}.`, "bad");
  }
};

// retryTask makes a new task like an ended one.
export const retryTask = async (task) => {
  try {
    const made = await post(`/api/queue/${encodeURIComponent(task.queue_id)}/retry`, {}, { headers: { "Idempotency-Key": newKey() } });
    toast(`${shortId(task.queue_id)} is tried again as ${shortId(made.queue_id)}.`);
  } catch (error) {
    toast(`${shortId(task.queue_id)} is not tried again: ${error.message}.`, "bad");
  }
};

// CancelButton is the action of a row.
export const CancelButton = ({ task }) => {
  const may = useMay("cancel");
  const under = task.state === "cancelling";
  return html`<button type="button" class="small" disabled=${!may.ok || under} title=${may.why || undefined} aria-label=${`${under ? "Cancelling" : "Cancel"} ${shortId(task.queue_id)}`} onClick=${() => cancelTask(task)}>${under ? "Cancelling" : "Cancel"}</button>`;
};
