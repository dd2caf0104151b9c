// A row of the task list, and its columns.
import { html, useMedia, useStore } from "../lib/dom.js";
import { isEnded, isWaiting } from "../lib/board.js";
import { useMay } from "../lib/me.js";
import { money } from "../lib/money.js";
import { hiddenColumns } from "../lib/prefs.js";
import { age, clock, full, local, range, since, span, useNow, took } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { CancelButton, retryTask } from "../parts/cancel.js";
import { doingOf, whoOf } from "../parts/doing.js";
import { Menu } from "../parts/menu.js";
import { State } from "../parts/state.js";
import { go, taskPath, useRoute } from "../lib/router.js";
import { shortId, TaskLink } from "../parts/tasklink.js";

const unseen = (text) => html`<span class="unseen">${text}</span>`;

// Columns with a title can be hidden; sort is the order by a column.
const columns = [
  { name: "pick", label: unseen("Selected"), width: "20px" }, { name: "state", label: "State", width: "104px" }, { name: "id", label: "Id", title: "Id", width: "58px" },
  { name: "what", label: "Task", width: "minmax(0, 1fr)" }, { name: "where", label: "Where", title: "Where", width: "minmax(0, 220px)", sort: "agent", ascends: true }, { name: "time", label: "Time", title: "Time", width: "var(--time)", sort: "ended" },
  { name: "took", label: "Duration", title: "Duration", width: "76px", sort: "duration" }, { name: "cost", label: "Cost", title: "Cost", width: "64px" }, { name: "do", label: unseen("Actions"), width: "76px" },
];

// useHidden returns the hidden columns: from the address, else from this browser's settings.
const useHidden = () => {
  const kept = useStore(hiddenColumns), asked = useRoute().query.get("hide");
  return (asked ?? kept).split(",").filter((name) => columns.some((c) => c.name === name && c.title));
};

// useHideText is their form in an address.
export const useHideText = () => useHidden().join(",") || "none";

// useColumns returns the visible columns for which there is room.
export const useColumns = () => {
  const hidden = useHidden();
  const phone = useMedia("(max-width: 640px)"), wide = useMedia("(min-width: 1001px)"), middle = useMedia("(min-width: 801px)");
  const room = { where: wide || phone, took: middle, cost: wide };
  return columns.filter((c) => !hidden.includes(c.name) && room[c.name] !== false);
};

// ColumnMenu selects the columns; this browser remembers them. pathOf returns an address
// with the choice, if the present address has one.
export const ColumnMenu = ({ asked, pathOf }) => {
  const hidden = useHidden();
  const toggle = (name) => {
    const next = (hidden.includes(name) ? hidden.filter((n) => n !== name) : [...hidden, name]).join(",");
    hiddenColumns.set(next);
    if (asked !== null) go(pathOf({ hide: next || "none" }), { replace: true });
  };
  return html`<${Menu} label="Columns" items=${columns.filter((c) => c.title).map((c) => ({ text: c.title, checked: !hidden.includes(c.name), act: () => toggle(c.name) }))}>Columns</${Menu}>`;
};

// cells returns the cells of a task.
export const cells = (shown, t, { picked, toggle }) => shown.map((c) => cell[c.name](t, picked, toggle));

const cell = {
  pick: (t, picked, toggle) => html`<input type="checkbox" checked=${picked} onChange=${() => toggle(t)} aria-label=${`Select ${shortId(t.queue_id)}`} />`,
  state: (t) => html`<${State} state=${t.state} title=${t.reason} />`,
  id: (t) => html`<${TaskLink} id=${t.queue_id} />`,
  what: (t) => html`<${What} task=${t} />`,
  where: (t) => html`<${Where} task=${t} />`,
  time: (t) => html`<${Time} task=${t} />`,
  took: (t) => html`<${Took} task=${t} />`,
  cost: (t) => html`<p class="cut small-text quiet" title=${t.tokens ? `${t.tokens.toLocaleString("en")} tokens` : undefined}>${money(t.cost_usd)}</p>`,
  do: (t) => (isEnded(t.state) ? html`<${RetryButton} task=${t} />` : html`<${CancelButton} task=${t} />`),
};

// secondsOf is how long a task has run, until its end or now; undefined if it has not
// started.
export const secondsOf = (t, now) => (t.started_at ? since(t.started_at, t.ended_at ? Date.parse(t.ended_at) : now) : undefined);

const Took = ({ task: t }) => {
  const now = useNow(), seconds = secondsOf(t, now);
  return seconds !== undefined && html`<p class="cut small-text quiet">${isEnded(t.state) ? took(seconds) : span(seconds)}</p>`;
};

const What = ({ task: t }) => {
  const now = useNow();
  const doing = !isEnded(t.state) && !isWaiting(t.state) ? doingOf(t, null, now) : null;
  const failed = (t.state === "failed" || t.state === "timeout") && t.message;
  return html`<p class="cut" dir="auto" title=${t.prompt_preview}><a class="row-title" href=${taskPath(t.queue_id)}>${t.tool && html`<code>${t.tool}</code> `}${t.prompt_preview}</a>${doing && html` <span class=${`tone-${doing.tone} small-text`}>${doing.text}</span>`}${failed && html` <span class="tone-bad small-text">${t.message}</span>`}</p>`;
};

const Where = ({ task: t }) => html`<p class="cut small-text quiet">${t.agent && !isWaiting(t.state) ? html`<${AgentLink} name=${t.agent} />` : html`${t.position ? `#${t.position} in ` : ""}${t.queue}`}${whoOf(t) && ` · ${whoOf(t)}`}</p>`;

const Time = ({ task: t }) => {
  const now = useNow();
  if (isEnded(t.state)) return html`<p class="cut small-text quiet" title=${full(t.ended_at)}>${age(t.ended_at, now)} ago</p>`;
  if (isWaiting(t.state)) return html`<p class="cut small-text quiet" title=${[full(t.created_at), t.waiting_for && local(t.waiting_for.text, now)].filter(Boolean).join("\n")}>waits ${age(t.created_at, now)}${t.waiting_for?.until ? ` · until ${clock(t.waiting_for.until, now)}` : t.eta ? ` · ${range(t.eta)}` : ""}</p>`;
  return html`<p class="cut small-text quiet" title=${full(t.started_at)}>${t.started_at ? `started ${age(t.started_at, now)} ago` : "starting"}</p>`;
};

const RetryButton = ({ task }) => {
  const may = useMay(task.mode === "tool" ? "tool" : "submit");
  return html`<button type="button" class="small" disabled=${!may.ok} title=${may.why || undefined} aria-label=${`Retry ${shortId(task.queue_id)}`} onClick=${() => retryTask(task)}>Retry</button>`;
};
