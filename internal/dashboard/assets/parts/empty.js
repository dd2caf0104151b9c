// An empty list, and how to fill it.
import { html } from "../lib/dom.js";
import { Copy } from "./copy.js";

export const Empty = ({ title, text, command, children }) => html`<div class="empty">
  <p class="empty-title">${title}</p>
  ${text ? html`<p class="quiet">${text}</p>` : null}
  ${command ? html`<p class="command"><code>${command}</code><${Copy} text=${command} /></p>` : null}
  ${children}
</div>`;
