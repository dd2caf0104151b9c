// The schedules: when each fires, in words, the outcomes, and the dialog to make one.
import { html, useEffect, useState } from "../lib/dom.js";
import { get, query as queryOf } from "../lib/api.js";
import { useMay } from "../lib/me.js";
import { go } from "../lib/router.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Filter, filtered, Listing, sorted } from "../parts/listing.js";
import { useLoad } from "../parts/load.js";
import { editSchedule } from "./schedule-edit.js";
import { columnsOf, useRefresh } from "./schedule-row.js";
import { Detail } from "./schedule-detail.js";

export default ({ id, query }) => (id ? html`<${Detail} key=${id} id=${id} />` : html`<${List} query=${query} />`);

const page = 500;

const textOf = (s) => [s.name, s.description, s.message, s.agent_name, s.kind, s.words, s.cron_expression, s.timezone].join("\n");

const List = ({ query }) => {
  const enabled = query.get("enabled") ?? "", filter = query.get("filter") ?? "", sort = query.get("sort") ?? "name";
  const set = (change) => go(`/ui/schedules${queryOf({ enabled, filter, sort: sort === "name" ? "" : sort, ...change })}`, { replace: true });
  const [rest, setRest] = useState({ list: [], next: null, error: null });
  const may = useMay("submit");
  const ask = { outcomes: 8, limit: page, enabled };
  const { data, error, again } = useLoad(`/api/schedules${queryOf(ask)}`, 15_000);
  useRefresh(again);
  useEffect(() => setRest({ list: [], next: null, error: null }), [enabled]);
  const more = async () => {
    try {
      const answer = await get(`/api/schedules${queryOf({ ...ask, after: rest.next ?? data.next })}`);
      setRest({ list: [...rest.list, ...answer.schedules], next: answer.next ?? "", error: null });
    } catch (cause) {
      setRest({ ...rest, error: cause });
    }
  };
  const list = [...(data?.schedules ?? []), ...rest.list];
  const next = rest.next ?? data?.next, columns = columnsOf(again);
  const shown = sorted(filtered(list, filter, textOf), columns, sort);
  return html`
    <div class="page-head"><h1>Schedules</h1>
      <label class="check" for="schedules-shown">Show <select id="schedules-shown" value=${enabled} onChange=${(e) => set({ enabled: e.target.value })}>
        <option value="">all</option><option value="true">enabled ones</option><option value="false">disabled ones</option></select></label>
      ${list.length > 1 && html`<${Filter} label="Filter schedules" value=${filter} set=${(words) => set({ filter: words })} />`}
      <button type="button" class="primary" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => editSchedule(null, again)}>New schedule</button>
    </div>
    ${error && (error.code === "not_found" ? html`<${NoScheduler} error=${error} />` : html`<${ErrorBox} error=${error} retry=${again} />`)}
    ${!data && !error && html`<p class="quiet">Loading…</p>`}
    ${data && list.length === 0 && html`<${Empty} title=${enabled ? "None of them." : "No schedules yet"} text=${enabled ? "" : "A schedule submits a task at set times. Make one here, in the configuration under jobs, or on the command line:"}
      command=${enabled ? "" : `signalbox schedules add nightly --cron "0 3 * * *" --prompt "Tidy up the issue tracker"`} />`}
    ${list.length > 0 && shown.length === 0 && html`<p class="quiet">No schedule matches “${filter}”.</p>`}
    ${shown.length > 0 && html`<${Listing} label="Schedules" name="schedules" columns=${columns} items=${shown} keyOf=${(s) => s.id} sort=${sort} onSort=${(by) => set({ sort: by === "name" ? "" : by })}
      rowOf=${(s) => ({ class: s.enabled ? "" : "is-off", "aria-label": `Schedule ${s.name}` })} />`}
    <${ErrorBox} error=${rest.error} retry=${more} />
    ${next && html`<p><button type="button" onClick=${more}>More schedules</button> <span class="quiet">Sort and filter apply to the ${list.length} loaded ones.</span></p>`}`;
};

const NoScheduler = ({ error }) => html`<${Empty} title="This director runs no scheduler." text=${error.hint || error.message} command="signalbox scheduler --director URL" />`;
