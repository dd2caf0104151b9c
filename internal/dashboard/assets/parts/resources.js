// Resources that tasks need, with the runs that hold them.
import { html } from "../lib/dom.js";
import { Bars } from "./bars.js";
import { Card } from "./card.js";
import { useLoad } from "./load.js";
import { TaskLink } from "./tasklink.js";

// Resources is the card of configured resources, and of held folders and branches.
export const Resources = () => {
  const { data } = useLoad("/api/resources", 5000);
  const list = data?.resources ?? [];
  if (list.length === 0) return null;
  return html`<${Card} title="Resources" note="what runs hold until they end" name="resources">
    <div class="accounts">${list.map((r) => html`<${Resource} key=${`${r.kind} ${r.name}`} resource=${r} />`)}</div>
  </${Card}>`;
};

const kinds = { resource: "", folder: "Folder ", land: "Landing on " };

const Resource = ({ resource: r }) => {
  const name = (kinds[r.kind] ?? "") + r.name, used = r.capacity - r.free;
  return html`<section class="account" aria-label=${name}>
    <div class="account-head"><h3 class="cut" title=${name}>${name}</h3><span class="small-text quiet">${r.free} of ${r.capacity} free${r.waiting > 0 ? `, ${r.waiting} waiting` : ""}</span></div>
    <${Bars} used=${used} total=${r.capacity} full=${r.free === 0} label=${`${name}: ${used} of ${r.capacity} held`} />
    ${(r.holders ?? []).map((h) => html`<p class="small-text" key=${`${h.agent} ${h.queue_id}`}>${h.n > 1 ? `${h.n} by ` : ""}${h.agent}${h.queue_id && html`: <${TaskLink} id=${h.queue_id} />`}</p>`)}
  </section>`;
};
