// A box with a title; side stands at the other end of the title's line.
import { html, cx, useId } from "../lib/dom.js";

export const Card = ({ title, side, children, name }) => {
  const id = useId();
  return html`<section class=${cx("card", name && `card-${name}`)} aria-labelledby=${title ? id : undefined}>
    ${title ? html`<header class="card-head"><h2 id=${id}>${title}</h2>${side ? html`<div class="card-side">${side}</div>` : null}</header>` : null}
    ${children}
  </section>`;
};
