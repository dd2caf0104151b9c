// The landing of a task's work on a branch, and its actions.
import { html, useId, useState } from "../lib/dom.js";
import { local } from "../lib/time.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Field } from "../parts/fields.js";
import { dropLanding, land } from "../parts/landing.js";
import { useAction } from "../parts/load.js";
import { TaskLink } from "../parts/tasklink.js";
import { Text } from "../parts/text.js";
import { useMayCancel } from "./task-actions.js";

const words = { wanted: "wanted", queued: "next", landing: "landing", returned: "being mended", landed: "landed", stands: "needs you", dropped: "dropped" };
const tones = { queued: "tone-busy", landing: "tone-busy", returned: "tone-busy", landed: "tone-good", stands: "tone-warn" };

// canLand reports whether a task did work of its own that may land.
const canLand = ({ state, mode, result }) => {
  const changes = result?.changes;
  return state === "completed" && mode !== "tool" && mode !== "land" && Boolean(changes) && changes.workspace !== "folder" && changes.files_changed + changes.commits > 0;
};

export const Landing = ({ task, again }) => {
  const id = useId(), { landing } = task, may = useMayCancel(task);
  const [act, busy, error] = useAction(async (what) => { await what(); again(); });
  const asks = canLand(task) && (!landing || landing.state === "dropped");
  if (!landing && !asks) return null;
  const button = (text, what, primary) => html`<button type="button" class=${primary ? "primary" : undefined} disabled=${busy || !may.ok} title=${may.why || undefined} onClick=${() => act(what)}>${text}</button>`;
  return html`
    <section class="card landing" aria-labelledby=${id}>
      <header class="card-head"><h2 id=${id}>Landing</h2>${landing && html`<span class=${tones[landing.state] ?? "quiet"}>${words[landing.state] ?? landing.state}</span>`}</header>
      <div class="card-body">
        ${landing && html`<${Text} text=${sentence(local(landing.text))} lines=${12} /><${Tasks} landing=${landing} />`}
        ${asks && html`<${Ask} task=${task} act=${act} busy=${busy} may=${may} error=${error} />`}
        ${landing?.state === "stands" && html`<p class="buttons">${button("Try again", () => land(task.queue_id), true)}${button("Drop", () => dropLanding(task.queue_id))}</p>`}
        ${["queued", "landing", "returned"].includes(landing?.state) && html`<p class="buttons">${button("Drop", () => dropLanding(task.queue_id))}</p>`}
        ${error?.field !== "onto" && html`<${ErrorBox} error=${error} />`}
      </div>
    </section>`;
};

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

// Tasks lists the tasks that land and fix the work, and the worktree.
const Tasks = ({ landing: l }) => html`<p class="quiet">
  ${l.land_task && html`<span>Landing task <${TaskLink} id=${l.land_task} />.</span>`}
  ${l.turn && html` <span>Mended by <${TaskLink} id=${l.turn} />.</span>`}
  ${l.rounds > 0 && html` <span>It went back to its conversation ${l.rounds === 1 ? "once" : `${l.rounds} times`}.</span>`}
  ${l.url && html` <a href=${l.url} rel="noreferrer">Pull request</a>`}</p>`;

const Ask = ({ task, act, busy, may, error }) => {
  const [onto, setOnto] = useState(task.landing?.onto ?? task.result.changes.base_branch ?? "");
  const submit = (e) => { e.preventDefault(); act(() => land(task.queue_id, { onto: onto.trim() })); };
  return html`<form class="landing-ask" onSubmit=${submit}>
    <${Field} label="Branch" hint="pr opens a pull request" error=${error} name="onto">${(p) => html`<input ...${p} value=${onto} maxlength="200" autocomplete="off" autocapitalize="none" spellcheck=${false} onInput=${(e) => setOnto(e.target.value)} />`}</${Field}>
    <button type="submit" disabled=${busy || !may.ok || !onto.trim()} title=${may.why || undefined}>Land</button>
  </form>`;
};
