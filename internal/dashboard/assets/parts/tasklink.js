// The short form of a task's id, with a link to its page.
import { html } from "../lib/dom.js";
import { taskPath } from "../lib/router.js";

// shortId is the end of an id: the beginning is a time that many ids share.
export const shortId = (id = "") => (/^queue-.{9,}$/.test(id) ? "…" + id.slice(-4) : id);

export const TaskLink = ({ id, children, title, ...rest }) =>
  html`<a class="id" href=${taskPath(id)} title=${title ?? id} ...${rest}>${children ?? shortId(id)}</a>`;
