// An agent's name, leading to its page.
import { html } from "../lib/dom.js";
import { agentPath } from "../lib/router.js";

export const AgentLink = ({ name, children }) => html`<a href=${agentPath(name)}>${children ?? name}</a>`;
