// An error: what failed, why, its request id in the log, and a retry button.
import { html } from "../lib/dom.js";
import { Icon } from "./icon.js";

const sentence = (text) => (/[.!?]$/.test(text) ? text : text + ".");

export const ErrorBox = ({ error, title, retry }) => error && html`<div class="error" role="alert">
  <p class="error-title"><${Icon} name="warn" />${title ?? "That did not work"}</p>
  <p>${sentence(error.message || String(error))}</p>
  ${error.hint ? html`<p class="quiet">${sentence(error.hint)}</p>` : null}
  <p class="quiet small-text">${error.code ? html`<code>${error.code}</code>` : null}${error.request_id ? html` · request <code>${error.request_id}</code>` : null}</p>
  ${retry ? html`<p><button type="button" onClick=${retry}>Try again</button></p>` : null}
</div>`;
