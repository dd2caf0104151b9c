// The actions on an agent and its line, or on all. Each dialog first says what it
// will do.
import { html, useId, useState } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { current, useLive } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { age } from "../lib/time.js";
import { Confirm } from "./confirm.js";
import { Dialog, openDialog } from "./dialog.js";
import { ErrorBox } from "./errorbox.js";
import { useAction } from "./load.js";
import { Menu } from "./menu.js";
import { shortId } from "./tasklink.js";
import { toast } from "./toast.js";

// AgentMenu is the menu of actions on an agent. onTerminal is set if the page can
// show a terminal.
export const AgentMenu = ({ agent, onTerminal }) => {
  const admin = useMay("admin"), release = useMay("release"), terminal = useMay("terminal");
  const paused = agent.pause && agent.pause.queue !== "";
  return html`<${Menu} label=${`Actions for ${agent.name}`} items=${[
    paused ? { text: "Resume", act: () => resume(agent.pause.queue), off: admin.why }
      : { text: "Pause…", act: () => pause(`agent:${agent.name}`), off: admin.why },
    onTerminal && { text: "Terminal", act: onTerminal, off: terminal.why || (!agent.terminal && "The agent offers none.") || (agent.state === "down" && "It is not connected.") },
    { text: "Clear its line…", act: () => clearLine(agent.name), off: release.why || (agent.waiting === 0 && "Nothing waits for it alone.") },
    { text: "Force release…", act: () => forceRelease(agent.name), off: release.why, danger: true },
  ]} />`;
};

const lineOf = (queue) => (queue === "" ? "everything" : queue.startsWith("agent:") ? queue.slice(6) : queue);

// pause opens the dialog for a queue; "" is all queues.
export const pause = (queue) => openDialog((close) => html`<${Pause} queue=${queue} onClose=${close} />`);

const lengths = [["", "until someone resumes it"], ["900", "for 15 minutes"], ["3600", "for an hour"], ["14400", "for 4 hours"], ["86400", "for a day"]];

const Pause = ({ queue, onClose }) => {
  const [reason, setReason] = useState(""), [seconds, setSeconds] = useState("");
  const reasonId = useId(), lengthId = useId();
  const [run, busy, error] = useAction(async () => {
    await post("/api/queue/pause", { queue, reason, seconds: Number(seconds) || undefined });
    toast(`${lineOf(queue)} is paused.`);
    onClose();
  });
  const foot = html`<button type="button" onClick=${onClose}>Cancel</button><button type="submit" class="primary" disabled=${busy}>${busy ? "Working…" : "Pause"}</button>`;
  return html`<${Dialog} title=${`Pause ${lineOf(queue)}`} onClose=${onClose} onSubmit=${run} foot=${foot}>
    <p>${consequence(queue)}</p>
    <p><label for=${reasonId}>Reason, shown to others</label>
      <input id=${reasonId} data-first="" maxlength="500" value=${reason} onInput=${(e) => setReason(e.target.value)} /></p>
    <p><label for=${lengthId}>How long</label>
      <select id=${lengthId} value=${seconds} onChange=${(e) => setSeconds(e.target.value)}>${lengths.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></p>
    <${ErrorBox} error=${error} />
  </${Dialog}>`;
};

const consequence = (queue) => {
  if (queue === "") return "No task starts. Running tasks go on, and submitted tasks wait in line.";
  if (queue.startsWith("agent:")) return "It finishes its running tasks and takes no new ones from any line. Tasks for it alone stay in line.";
  return "No task of this line starts. Running tasks go on, and submitted tasks wait.";
};

export const resume = async (queue) => {
  try {
    await post("/api/queue/resume", { queue });
    toast(`${lineOf(queue)} takes work again.`);
  } catch (error) {
    toast(`Not resumed: ${error.message}.`, "bad");
  }
};

// clearLine cancels the tasks that wait for an agent alone.
export const clearLine = (name) => openDialog((close) => html`<${ClearLine} name=${name} onClose=${close} />`);

const ClearLine = ({ name, onClose }) => {
  const n = useLive((board) => board.agents.get(name)?.waiting ?? 0);
  return html`<${Confirm} title=${`Clear the line of ${name}`} action=${`Cancel ${n} waiting ${n === 1 ? "task" : "tasks"}`} onClose=${onClose}
    consequence=${[`${n} ${n === 1 ? "task" : "tasks"} that ${n === 1 ? "waits" : "wait"} for ${name} alone will be cancelled. Running tasks go on. A cancelled task can be retried.`]}
    onConfirm=${async () => {
      const answer = await post(`/api/agents/${encodeURIComponent(name)}/queue/clear`);
      toast(`${answer.cleared_count} cancelled.`);
    }} />`;
};

// forceRelease frees the slots of an agent.
export const forceRelease = (name) => openDialog((close) => html`<${ForceRelease} name=${name} onClose=${close} />`);

const ForceRelease = ({ name, onClose }) => {
  const [agent] = useState(() => current().agents.get(name)); // when the dialog was opened
  const held = (agent?.current ?? []).filter((t) => t.mode !== "bypass" || t.state === "cancelling");
  return html`<${Confirm} title=${`Force release of ${name}`} action="Take the slot away" typed=${name} onClose=${onClose}
    onConfirm=${async () => {
      const answer = await post(`/api/agents/${encodeURIComponent(name)}/queue/release`);
      toast(answer.was_running ? `${name} is released: ${answer.queue_ids.map(shortId).join(", ")} lost ${answer.queue_ids.length === 1 ? "its slot" : "their slots"}.` : `${name} is released; nothing held a slot.`);
    }}>
    ${held.length === 0 && html`<p>No task holds a slot of ${name} now. If offers are withheld from it, they are made again.</p>`}
    ${held.map((task) => html`<p key=${task.queue_id}><strong>Lost:</strong> <span class="id">${shortId(task.queue_id)}</span> “${task.prompt_preview}”, which has run for ${ran(task)}, ends as ${task.state === "cancelling" ? "cancelled" : "failed (released)"}.</p>`)}
    ${held.length > 0 && html`<p><strong>Starts next:</strong> ${nextOf(agent)}</p>`}
    ${held.length > 0 && html`<p>Later reports of the old run change nothing. ${agent?.fencing
      ? "The agent stops it before it takes the next task."
      : "The agent does not support fences: the old run may continue beside the next one until it ends."}</p>`}
  </${Confirm}>`;
};

const ran = (task) => age(task.started_at ?? task.created_at);

const nextOf = (agent) => {
  const next = agent.line?.[0];
  if (next) return html`<span class="id">${shortId(next.queue_id)}</span> “${next.prompt_preview}”, unless a task of another line that it serves is before it.`;
  return "the first task of the lines that it serves; none waits for it alone.";
};
