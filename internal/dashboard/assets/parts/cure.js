// The director's advice on a problem: a command to copy, if it is one, and the
// buttons for the same action, if the user has the right.
import { html } from "../lib/dom.js";
import { get, post } from "../lib/api.js";
import { current } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { taskPath } from "../lib/router.js";
import { forceRelease, resume } from "./agentactions.js";
import { openAccount } from "./accounts.js";
import { cancelTask } from "./cancel.js";
import { Command } from "./command.js";
import { shortId } from "./tasklink.js";
import { toast } from "./toast.js";

const landings = () => import("./landing.js"); // seldom needed

// isCommand: the text can be pasted into a terminal.
const isCommand = (text) => /^signalbox( [\w:@./=…-]+)+$/.test(text);

// Cure shows the text and the buttons; with plain only the buttons.
export const Cure = ({ text, plain }) => {
  const admin = useMay("admin"), cancel = useMay("cancel"), release = useMay("release");
  if (!text) return null;
  const [, queue] = /^signalbox resume(?: (\S+))?$/.exec(text) ?? [null, null];
  const [, task] = /signalbox cancel (queue-\w+)/.exec(text) ?? [];
  const [, parked] = /signalbox unpark (queue-\w+)/.exec(text) ?? [];
  const [, account] = /signalbox accounts open (\S+?)[,;]?(?: |$)/.exec(text) ?? [];
  const [, agent] = /signalbox release (\S+?)[,;]?(?: |$)/.exec(text) ?? [];
  const [, landing] = /^signalbox land (queue-\w+)/.exec(text) ?? [];
  const buttons = [
    landing && html`<a class="button small" href=${taskPath(landing)}>Open</a>`,
    landing && cancel.ok && html`<button type="button" class="small" onClick=${() => landings().then((m) => m.landById(landing))}>Land again</button>`,
    landing && cancel.ok && html`<button type="button" class="small" onClick=${() => landings().then((m) => m.dropById(landing))}>Drop</button>`,
    queue !== null && admin.ok && html`<button type="button" class="small" onClick=${() => resume(queue ?? "")}>Resume ${queue ?? "everything"}</button>`,
    account && admin.ok && html`<button type="button" class="small" onClick=${() => openAccount(account)}>Open account</button>`,
    parked && cancel.ok && html`<button type="button" class="small" onClick=${() => unparkById(parked)}>Run ${shortId(parked)} now</button>`,
    task && cancel.ok && html`<button type="button" class="small" onClick=${() => cancelById(task)}>Cancel ${shortId(task)}</button>`,
    agent && release.ok && current().agents.has(agent) && html`<button type="button" class="small" onClick=${() => forceRelease(agent)}>Force release…</button>`,
  ].filter(Boolean);
  return html`<div class="cure">${plain ? null : isCommand(text) ? html`<${Command} text=${text} />` : html`<p class="quiet">${text}</p>`}${buttons}</div>`;
};

const unparkById = async (id) => {
  try {
    await post(`/api/queue/${encodeURIComponent(id)}/unpark`);
    toast(`${shortId(id)} is first in its queue.`);
  } catch (error) {
    toast(`${shortId(id)} does not run now: ${error.message}.`, "bad");
  }
};

const cancelById = async (id) => {
  try {
    await cancelTask(current().tasks.get(id) ?? await get(`/api/queue/${encodeURIComponent(id)}`));
  } catch (error) {
    toast(`${shortId(id)} is not cancelled: ${error.message}.`, "bad");
  }
};
