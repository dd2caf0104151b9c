// The worktrees of agents, each with what would be lost if it were discarded. They are loaded
// only while they are shown, because the agents must examine all of them.
import { html, useState } from "../lib/dom.js";
import { del } from "../lib/api.js";
import { useMay } from "../lib/me.js";
import { age, full, useNow } from "../lib/time.js";
import { AgentLink } from "./agentlink.js";
import { Confirm } from "./confirm.js";
import { openDialog } from "./dialog.js";
import { ErrorBox } from "./errorbox.js";
import { Listing, sorted } from "./listing.js";
import { useLoad } from "./load.js";
import { State } from "./state.js";
import { TaskLink } from "./tasklink.js";
import { toast } from "./toast.js";
import { discardPath, lostOf, sizeText, stateText, toneOf } from "./workspace-words.js";

export const Workspaces = () => {
  const [open, setOpen] = useState(false);
  return html`<section class="workspaces" aria-labelledby="workspaces-head">
    <header class="card-head"><h2 id="workspaces-head">Worktrees</h2>
      <button type="button" class="plain" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${open ? "Fold" : "Show"}</button></header>
    ${open && html`<${List} />`}
  </section>`;
};

const List = () => {
  const { data, error, busy, again } = useLoad("/api/workspaces", 60_000);
  const [sort, setSort] = useState("agent");
  if (!data) return busy ? html`<p class="card-body quiet" aria-busy="true">Asking the agents…</p>` : html`<${ErrorBox} error=${error} title="The worktrees could not be loaded" retry=${again} />`;
  const columns = columnsOf(again);
  return html`
    ${data.agents.filter((a) => a.full).map((a) => html`<p key=${a.agent} class="note is-warn"><${AgentLink} name=${a.agent} /> takes no tasks: ${a.full}</p>`)}
    ${data.workspaces.length === 0 && html`<p class="card-body quiet">No agent has a worktree.</p>`}
    ${data.workspaces.length > 0 && html`<${Listing} label="Worktrees" name="workspaces" columns=${columns} items=${sorted(data.workspaces, columns, sort)} keyOf=${(w) => `${w.agent} ${w.name}`} sort=${sort} onSort=${setSort}
      rowOf=${(w) => ({ "aria-label": `Worktree ${w.name} of ${w.agent}` })} />`}
    ${data.agents.flatMap((a) => (a.mirrors ?? []).map((m) => html`<p key=${`${a.agent} ${m.repo}`} class="card-body quiet small-text">${a.agent} keeps a mirror of ${m.repo}: ${sizeText(m.bytes)}.</p>`))}
    ${data.agents.filter((a) => a.message).map((a) => html`<p key=${a.agent} class="card-body quiet small-text" dir="auto">${a.message}</p>`)}
    <${ErrorBox} error=${error} title="The worktrees could not be updated" retry=${again} />`;
};

const Used = ({ at }) => {
  const now = useNow();
  return at ? html`<span title=${full(at)}>${age(at, now)} ago</span>` : html`<span class="quiet">unknown</span>`;
};

const columnsOf = (again) => [
  { name: "agent", label: "Worktree", by: (w) => w.agent, cell: (w) => html`<p class="cut"><${AgentLink} name=${w.agent} /></p><p class="cut quiet small-text" title=${w.dir}>${w.name}</p>` },
  { name: "state", label: "State", by: (w) => w.state, cell: (w) => html`<p><${State} state="idle" tone=${toneOf(w)} text=${stateText(w)} title=${w.message} /></p>${w.message && html`<p class="quiet small-text" dir="auto">${w.message}</p>`}` },
  { name: "branch", label: "Branch", by: (w) => w.branch, cell: (w) => html`<p class="cut"><code>${w.branch}</code></p><p class="cut quiet small-text" title=${w.repo}>${w.repo}</p>` },
  { name: "task", label: "Task", cell: (w) => w.queue_id && html`<${TaskLink} id=${w.queue_id} />` },
  { name: "size", label: "Size", falling: true, by: (w) => w.bytes, cell: (w) => sizeText(w.bytes, w.bytes_at_least) },
  { name: "used", label: "Used", falling: true, by: (w) => w.last_used_at, cell: (w) => html`<${Used} at=${w.last_used_at} />` },
  { name: "do", label: html`<span class="unseen">Actions</span>`, cell: (w) => html`<${Discard} worktree=${w} again=${again} />` },
];

const Discard = ({ worktree: w, again }) => {
  const admin = useMay("admin");
  const off = admin.why || (w.state === "in_use" && "A run works in it.") || (w.state === "unknown" && "Its content is unknown.");
  return html`<button type="button" class="small" disabled=${Boolean(off)} title=${off || undefined} aria-label=${`Discard ${w.name} of ${w.agent}`} onClick=${() => openDialog((close) => html`<${Ask} worktree=${w} again=${again} onClose=${close} />`)}>Discard…</button>`;
};

const Ask = ({ worktree: w, again, onClose }) => {
  const [branch, setBranch] = useState(false);
  const lost = lostOf(w, branch);
  return html`<${Confirm} title=${`Discard the worktree ${w.name}`} action="Discard" onClose=${onClose}
    onConfirm=${async () => {
      const done = await del(discardPath(w, branch));
      toast(`${done.name} is discarded${done.branch_deleted ? ` with its branch ${done.branch}` : `; its branch ${done.branch} stays`}.`);
      again();
    }}>
    ${lost.length === 0 && html`<p>It has no uncommitted work${w.commits_count > 0 ? `, and its branch ${w.branch} stays` : ""}.</p>`}
    ${lost.map((part) => html`<p key=${part.head}><strong>${part.head}</strong></p><ul class="lost">${part.lines.map((line) => html`<li key=${line}><code dir="auto">${line}</code></li>`)}${part.more && html`<li class="quiet">${part.more}</li>`}</ul>`)}
    ${w.commits_count > 0 && html`<p><label class="check"><input type="checkbox" checked=${branch} onChange=${(e) => setBranch(e.target.checked)} /> Delete its branch ${w.branch} too</label></p>`}
    <p class="quiet">Files that git ignores are lost with it. The conversation goes on in a new worktree.</p>
  </${Confirm}>`;
};
