// A box with a title; note is beside the title, side at the other end of the line.
import { html, cx, useId } from "../lib/dom.js";

export const Card = ({ title, note, side, children, name }) => {
  const id = useId();
  return html`<section class=${cx("card", name && `card-${name}`)} aria-labelledby=${title ? id : undefined}>
    ${title ? html`<header class="card-head"><h2 id=${id}>${title}</h2>${note ? html`<p class="card-note">${note}</p>` : null}${side ? html`<div class="card-side">${side}</div>` : null}</header>` : null}
    ${children}
  </section>`;
};
