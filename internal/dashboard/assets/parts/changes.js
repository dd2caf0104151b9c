// How many changes a list holds back while somebody points at it. It stands
// where its coming and going moves no row: in the head of a page.
import { html } from "../lib/dom.js";

export const Changes = ({ hold, show = hold.release }) => (hold.changes > 0
  ? html`<button type="button" class="small changes" onClick=${show} title="The list stands still while you point at it">${hold.changes} ${hold.changes === 1 ? "change" : "changes"}</button>`
  : null);
