// A schedule in the list: when, what, the outcomes, and the actions.
import { html, useEffect } from "../lib/dom.js";
import { del, post } from "../lib/api.js";
import { onChange } from "../lib/live.js";
import { useMay, useMe } from "../lib/me.js";
import { go, schedulePath, taskPath } from "../lib/router.js";
import { full, serverNow, span } from "../lib/time.js";
import { AgentLink } from "../parts/agentlink.js";
import { confirm } from "../parts/confirm.js";
import { Icon } from "../parts/icon.js";
import { Menu } from "../parts/menu.js";
import { shortId } from "../parts/tasklink.js";
import { toast } from "../parts/toast.js";
import { editSchedule } from "./schedule-edit.js";
import { failedInARow, inZone, markOf, outcomeText, tally } from "./schedule-words.js";

const soon = 1000; // ms: one reload for several changes

// useRefresh reloads when schedules or their tasks change on the board.
export const useRefresh = (again) => useEffect(() => {
  let timer = 0;
  const stop = onChange((event, data) => {
    const ours = event !== "change" || data.schedules?.length || data.tasks?.some((t) => t.source === "scheduler") || data.gone?.some((key) => key.startsWith("schedule:"));
    if (ours) timer ||= setTimeout(() => { timer = 0; again(); }, soon);
  });
  return () => { clearTimeout(timer); stop(); };
}, [again]);

// columnsOf returns the columns of the list.
export const columnsOf = (again) => [
  { name: "name", label: "Schedule", by: (s) => s.name, cell: (s) => html`<h2 class="cut"><a href=${schedulePath(s.id)}>${s.name}</a></h2><p class="cut quiet small-text" dir="auto" title=${s.message}>${s.description || s.message}</p>` },
  { name: "state", label: "State", by: urgency, cell: (s) => html`<${Standing} s=${s} />` },
  { name: "when", label: "When", cell: (s) => html`<p><strong>${s.words || s.cron_expression}</strong></p><p class="quiet small-text"><code>${s.cron_expression}</code> ${s.timezone}</p>` },
  { name: "next", label: "Next", by: (s) => (s.enabled ? s.next_runs?.[0] : undefined), cell: (s) => html`<${Next} s=${s} />` },
  { name: "whom", label: "For", by: (s) => s.agent_name || s.kind || "", cell: (s) => whom(s) },
  { name: "last", label: "Last times", cell: (s) => html`<${Marks} s=${s} />` },
  { name: "do", label: html`<span class="unseen">Actions</span>`, cell: (s) => html`<${Actions} s=${s} again=${again} />` },
];

// urgency sorts schedules first that need attention.
const urgency = (s) => (!s.enabled ? 9 : s.overdue_seconds > 0 ? 0 : failedInARow(s.outcomes ?? []) > 0 ? 1 : s.last_status?.startsWith("skipped_") ? 2 : 5);

export const Standing = ({ s }) => {
  if (!s.enabled) return html`<span class="state tone-quiet"><${Icon} name="pause" />disabled</span>`;
  if (s.overdue_seconds > 0) return html`<span class="state tone-bad"><${Icon} name="warn" />overdue ${span(s.overdue_seconds)}</span>`;
  if (s.last_status?.startsWith("skipped_")) return html`<span class="state tone-warn"><${Icon} name="warn" />last one ${outcomeText({ outcome: s.last_status })}</span>`;
  const failed = failedInARow(s.outcomes ?? []);
  if (failed > 0) return html`<span class="state tone-bad"><${Icon} name="cross" />${failed === 1 ? "last task failed" : `last ${failed} tasks failed`}</span>`;
  return html`<span class="state tone-good"><${Icon} name="check" />enabled</span>`;
};

export const whom = (s) => (s.agent_name ? html`<${AgentLink} name=${s.agent_name} />` : s.kind ? `any agent of kind ${s.kind}` : "any agent");

// When shows the expression in words, the zone, and the next three times.
export const When = ({ s }) => html`
  <p class="schedule-when"><strong>${s.words || s.cron_expression}</strong> <code>${s.cron_expression}</code> <span class="quiet">${s.timezone}</span></p>
  ${s.enabled && s.next_runs?.length > 0 && html`<p class="quiet">Next:</p><${Next} s=${s} />`}`;

// Next shows the next three times in the schedule's zone; the first one also in the local zone.
const Next = ({ s }) => (s.enabled && s.next_runs?.length > 0
  ? html`<p><span class="next" title=${full(s.next_runs[0])}>${inZone(s.next_runs[0], s.timezone)}</span> <span class="quiet small-text">${until(s.next_runs[0])}${elsewhere(s.next_runs[0], s.timezone)}</span></p>
    <p class="quiet small-text">${s.next_runs.slice(1, 3).map((at) => html`<span key=${at} class="next" title=${full(at)}>${inZone(at, s.timezone)}</span>`)}</p>`
  : html`<span class="quiet">never</span>`);

const here = Intl.DateTimeFormat().resolvedOptions().timeZone;

// elsewhere is the local time, if it differs.
const elsewhere = (at, zone) => {
  const mine = inZone(at, here), its = inZone(at, zone);
  return mine === its ? "" : `, ${mine.slice(-5)} here`;
};

const until = (at) => {
  const seconds = (Date.parse(at) - serverNow()) / 1000;
  return seconds > 0 ? `in ${span(seconds)}` : `due ${span(-seconds)} ago`;
};

// Outcomes shows the last firings as marks, and a summary.
export const Outcomes = ({ s }) => {
  const runs = s.outcomes ?? [];
  if (runs.length === 0) return html`<p class="quiet">It has not fired yet.</p>`;
  return html`<div class="outcomes">
    <${Marks} s=${s} />
    <p class="quiet">Last ${runs.length}: ${tally(runs)}.${runs[0].queue_id && html` Newest: <a class="id" href=${taskPath(runs[0].queue_id)}>${shortId(runs[0].queue_id)}</a>`}</p>
    ${s.last_error && html`<p class="schedule-error">${s.last_error}</p>`}
  </div>`;
};

// Marks shows the last firings, each with a text.
const Marks = ({ s }) => {
  const runs = s.outcomes ?? [];
  if (runs.length === 0) return html`<span class="quiet">It has not fired yet.</span>`;
  return html`<ol class="marks" aria-label=${`Last ${runs.length} times, oldest first`}>${runs.toReversed().map((run) => html`<li key=${run.id}><${Mark} run=${run} zone=${s.timezone} /></li>`)}</ol>`;
};

const Mark = ({ run, zone }) => {
  const [icon, tone] = markOf(run);
  const text = `${inZone(run.nominal_at, zone)}: ${outcomeText(run)}${run.trigger === "manual" ? ", by hand" : run.trigger === "missed" ? ", made up for" : ""}`;
  const inside = html`<${Icon} name=${icon} /><span class="unseen">${text}</span>`;
  return run.queue_id
    ? html`<a class=${`mark tone-${tone}`} href=${taskPath(run.queue_id)} title=${text}>${inside}</a>`
    : html`<span class=${`mark tone-${tone}`} title=${text}>${inside}</span>`;
};

// useMayChange allows one's own schedules, for an admin all.
const useMayChange = (s) => {
  const me = useMe(), submit = useMay("submit"), admin = useMay("admin");
  if (admin.ok || !submit.ok) return submit;
  const mine = !s.owner_id || s.owner_id === me?.id || s.owner_id === `${me?.kind}:${me?.id}`;
  return mine ? submit : { ok: false, why: `It belongs to ${s.owner_id}.` };
};

const act = async (s, verb, done) => {
  try {
    return await post(`/api/schedules/${encodeURIComponent(s.id)}/${verb}`);
  } catch (error) {
    toast(`Not ${done}: ${error.message}.`, "bad");
    return null;
  }
};

// trigger fires it now, and shows the outcome.
const trigger = async (s) => {
  const answer = await act(s, "trigger", "fired");
  if (!answer) return;
  toast(answer.queue_id ? `${s.name} fired: task ${shortId(answer.queue_id)}.` : `${s.name}: ${outcomeText(answer.execution)}.`, answer.execution.outcome?.startsWith("skipped_") ? "bad" : "info");
};

export const Actions = ({ s, again, gone }) => {
  const may = useMayChange(s);
  const file = s.source === "config" && "It is in the configuration file: change it there.";
  const then = (verb, done) => async () => { if (await act(s, verb, done)) again(); };
  return html`<div class="buttons">
    <button type="button" disabled=${!may.ok} title=${may.why || "beside its times"} onClick=${async () => { await trigger(s); again(); }}>Run now</button>
    <${Menu} label=${`Actions for ${s.name}`} items=${[
      s.enabled ? { text: "Disable", act: then("disable", "disabled"), off: may.why } : { text: "Enable", act: then("enable", "enabled"), off: may.why },
      { text: "Edit…", act: () => editSchedule(s, again), off: may.why || file },
      { text: "Remove…", danger: true, off: may.why || file, act: () => remove(s, gone ?? again) },
    ]} /></div>`;
};

const remove = (s, then) => confirm({
  title: `Remove ${s.name}`, action: "Remove it", consequence: ["It stops firing, and its history is deleted. Its tasks stay."],
  onConfirm: async () => {
    await del(`/api/schedules/${encodeURIComponent(s.id)}`);
    toast(`${s.name} is removed.`);
    then();
  },
});

export const toList = () => go("/ui/schedules");
