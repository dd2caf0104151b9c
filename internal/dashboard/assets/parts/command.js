// A command to copy.
import { html } from "../lib/dom.js";
import { Copy } from "./copy.js";

export const Command = ({ text }) => html`<p class="command"><code>${text}</code><${Copy} text=${text} /></p>`;
