// How many changes a held list has. It is in the head of a page, where it moves no
// row when it appears.
import { html } from "../lib/dom.js";

export const Changes = ({ hold, show = hold.release }) => (hold.changes > 0
  ? html`<button type="button" class="small changes" onClick=${show} title="The list stands still while you point at it">${hold.changes} ${hold.changes === 1 ? "change" : "changes"}</button>`
  : null);
