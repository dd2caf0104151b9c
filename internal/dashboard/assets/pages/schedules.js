// The schedules: when each fires, in plain words, what came of it, and the
// dialog that makes one.
import { html, useEffect, useState } from "../lib/dom.js";
import { get, query as queryOf } from "../lib/api.js";
import { useMay } from "../lib/me.js";
import { hasWords, sorted } from "../lib/sift.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useLoad } from "../parts/load.js";
import { Sift, useSift } from "../parts/sift.js";
import { editSchedule } from "./schedule-edit.js";
import { ScheduleCard, useRefresh } from "./schedule-card.js";
import { Detail } from "./schedule-detail.js";
import { failedInARow } from "./schedule-words.js";

export default ({ id }) => (id ? html`<${Detail} key=${id} id=${id} />` : html`<${List} />`);

const page = 50, most = 1000; // of a page; of a filter or an order, which are of all

const orders = [["", "By name"], ["next", "Next first"], ["-last", "Fired last"], ["-failed", "Most failures in a row"], ["agent", "By agent"]];
const instant = (at) => (at ? Date.parse(at) : undefined);
const values = {
  next: (s) => instant(s.next_run_at), last: (s) => instant(s.last_run_at), agent: (s) => s.agent_name || s.kind, failed: (s) => failedInARow(s.outcomes ?? []),
};
const textOf = (s) => [s.name, s.description, s.message, s.words, s.cron_expression, s.timezone, s.agent_name, s.kind].join("\n");

const List = () => {
  const [enabled, setEnabled] = useState("");
  const [rest, setRest] = useState({ list: [], next: null, error: null });
  const may = useMay("submit");
  const { filter, sort } = useSift(), sifts = Boolean(filter.trim() || sort);
  const ask = { outcomes: 20, limit: sifts ? most : page, enabled };
  const { data, error, again } = useLoad(`/api/schedules${queryOf(ask)}`, 15_000);
  useRefresh(again);
  useEffect(() => setRest({ list: [], next: null, error: null }), [enabled, sifts]);
  const more = async () => {
    try {
      const answer = await get(`/api/schedules${queryOf({ ...ask, after: rest.next ?? data.next })}`);
      setRest({ list: [...rest.list, ...answer.schedules], next: answer.next ?? "", error: null });
    } catch (cause) {
      setRest({ ...rest, error: cause });
    }
  };
  const all = [...(data?.schedules ?? []), ...rest.list];
  const none = error?.code === "not_found" || (data && all.length === 0 && !sifts);
  const list = sorted(all.filter((s) => hasWords(textOf(s), filter)), sort, values);
  const next = rest.next ?? data?.next;
  return html`
    <div class="page-head"><h1>Schedules</h1>
      ${!none && html`<${Sift} what="schedules" orders=${orders} />`}
      <label class="check" for="schedules-shown">Show <select id="schedules-shown" value=${enabled} onChange=${(e) => setEnabled(e.target.value)}>
        <option value="">all</option><option value="true">enabled ones</option><option value="false">disabled ones</option></select></label>
      <button type="button" class="primary" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => editSchedule(null, again)}>New schedule</button>
    </div>
    ${error && (error.code === "not_found" ? html`<${NoScheduler} error=${error} />` : html`<${ErrorBox} error=${error} retry=${again} />`)}
    ${!data && !error && html`<p class="quiet">Loading…</p>`}
    ${all.length > 0 && list.length === 0 && html`<p class="quiet">No schedule matches “${filter}”.</p>`}
    ${sifts && next && html`<p class="quiet">These are of the first ${all.length.toLocaleString("en")} schedules by name; the others come with More schedules.</p>`}
    ${data && all.length === 0 && html`<${Empty} title=${enabled ? "None of them." : "No schedules yet"} text=${enabled ? "" : "A schedule submits a task at set times. Make one here, in the configuration under jobs, or on the command line:"}
      command=${enabled ? "" : `signalbox schedules add nightly --cron "0 3 * * *" --prompt "Tidy up the issue tracker"`} />`}
    <div class="schedules">${list.map((s) => html`<${ScheduleCard} key=${s.id} schedule=${s} again=${again} />`)}</div>
    <${ErrorBox} error=${rest.error} retry=${more} />
    ${next && html`<p><button type="button" onClick=${more}>More schedules</button></p>`}`;
};

const NoScheduler = ({ error }) => html`<${Empty} title="This director runs no scheduler." text=${error.hint || error.message} command="signalbox scheduler --director URL" />`;
