// A filter and an order for a list, which stand in the address.
import { html } from "../lib/dom.js";
import { query } from "../lib/api.js";
import { go, useRoute } from "../lib/router.js";

// useSift is {filter, sort} of the address.
export const useSift = () => {
  const { query: asked } = useRoute();
  return { filter: asked.get("filter") ?? "", sort: asked.get("sort") ?? "" };
};

// Sift: what names the items, as in "Filter agents"; orders are [sort, text], the first
// with sort "".
export const Sift = ({ what, orders }) => {
  const { path } = useRoute(), { filter, sort } = useSift();
  const to = (changes) => go(path + query({ filter, sort, ...changes }), { replace: true });
  return html`<span class="sift"><input type="search" aria-label=${`Filter ${what}`} placeholder="Filter" value=${filter} onInput=${(e) => to({ filter: e.target.value })} autocomplete="off" autocapitalize="none" spellcheck=${false} />
    <select aria-label=${`Sort ${what}`} value=${sort} onChange=${(e) => to({ sort: e.target.value })}>${orders.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></span>`;
};
