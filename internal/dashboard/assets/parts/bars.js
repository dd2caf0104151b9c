// Slots as bars; used ones are filled. More than 40 are one bar.
import { html, cx } from "../lib/dom.js";

const most = 40;

export const Bars = ({ used, total, full = used >= total, label }) => {
  const text = label ?? `${used} of ${total} in use`;
  if (total > most) {
    return html`<div class=${cx("bars", full && "bars-full")} role="img" aria-label=${text}><span class="bar bar-rest"><span class="bar-part" style=${{ width: `${(100 * used) / total}%` }}></span></span></div>`;
  }
  return html`<div class=${cx("bars", full && "bars-full")} role="img" aria-label=${text}>${Array.from({ length: total }, (_, i) =>
    html`<span key=${i} class=${cx("bar", i < used && "bar-used")}></span>`)}</div>`;
};
