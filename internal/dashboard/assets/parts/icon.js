// The icons, each with its own shape, so that colour is never the only sign. They are
// decoration: a word is beside each, or is its button's label.
import { html } from "../lib/dom.js";

const shapes = {
  play: "M3 1.5v9l7.5-4.5z",
  ring: "M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zm0 1.6a2.9 2.9 0 1 1 0 5.8 2.9 2.9 0 0 1 0-5.8z",
  clock: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm-.7 2h1.4v2.7l1.8 1.1-.7 1.2L5.3 6.5z",
  pause: "M2.5 1.5h2.5v9H2.5zM7 1.5h2.5v9H7z",
  warn: "M6 .8 11.6 11H.4zM5.3 4.4v3.2h1.4V4.4zm0 4.2V10h1.4V8.6z",
  cross: "M2.4 1.2 6 4.8l3.6-3.6 1.2 1.2L7.2 6l3.6 3.6-1.2 1.2L6 7.2l-3.6 3.6-1.2-1.2L4.8 6 1.2 2.4z",
  check: "m1.2 6.4 1.3-1.3 2.2 2.2 4.8-4.9 1.3 1.3-6.1 6.2z",
  slash: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm0 1.6c.7 0 1.3.2 1.9.5L3.1 7.9A3.4 3.4 0 0 1 6 2.6zm0 6.8c-.7 0-1.3-.2-1.9-.5l4.8-4.8A3.4 3.4 0 0 1 6 9.4z",
  timer: "M2 .8h8v1.6c0 1.6-1.2 2.6-2.4 3.6C8.8 7 10 8 10 9.6v1.6H2V9.6C2 8 3.2 7 4.4 6 3.2 5 2 4 2 2.4z",
  arrow: "M1 5.2h6.2L5 3l1.1-1.1L10.2 6l-4.1 4.1L5 9l2.2-2.2H1z",
  search: "M5 .8a4.2 4.2 0 1 0 2.5 7.6l2.6 2.7 1.1-1.1-2.7-2.6A4.2 4.2 0 0 0 5 .8zm0 1.5a2.7 2.7 0 1 1 0 5.4 2.7 2.7 0 0 1 0-5.4z",
  plus: "M5.2 1h1.6v4.2H11v1.6H6.8V11H5.2V6.8H1V5.2h4.2z",
  more: "M1 4.9h2.2v2.2H1zm3.9 0h2.2v2.2H4.9zm3.9 0H11v2.2H8.8z",
  down: "M2.4 3.7 6 7.3l3.6-3.6 1.1 1.1L6 9.5 1.3 4.8z",
  up: "M2.4 8.3 6 4.7l3.6 3.6 1.1-1.1L6 2.5 1.3 7.2z",
  next: "M3.7 2.4 7.3 6 3.7 9.6l1.1 1.1L9.5 6 4.8 1.3z",
  star: "m6 .9 1.5 3.3 3.6.4-2.7 2.4.8 3.6L6 8.8l-3.2 1.8.8-3.6L.9 4.6l3.6-.4z",
  columns: "M1 1.5h10v9H1zM2.4 3v6h1.7V3zm3.1 0v6h1V3zm2.4 0v6h1.7V3z",
  save: "M5.2 1h1.6v4.4l1.6-1.6 1.1 1.1L6 8.4 2.5 4.9l1.1-1.1 1.6 1.6zM1 9.5h10V11H1z",
  lock: "M3 5V3.8a3 3 0 0 1 6 0V5h.8v6H2.2V5zm1.5 0h3V3.8a1.5 1.5 0 0 0-3 0z",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 12 12" aria-hidden="true" focusable="false"><path d=${shapes[name]} fill-rule="evenodd" /></svg>`;
