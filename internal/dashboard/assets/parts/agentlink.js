// An agent's name, leading to its page. An executor of the director itself,
// whose name has an @, is no agent and has none.
import { html } from "../lib/dom.js";
import { agentPath } from "../lib/router.js";

export const AgentLink = ({ name, children }) => (name.includes("@")
  ? html`<span title="an executor of the director itself">${children ?? name}</span>`
  : html`<a href=${agentPath(name)}>${children ?? name}</a>`);
