// An agent's name with a link to its page. The director's own executors, whose
// names have an @, are not agents and have no page.
import { html } from "../lib/dom.js";
import { agentPath } from "../lib/router.js";

export const AgentLink = ({ name, children }) => (name.includes("@")
  ? html`<span title="an executor of the director itself">${children ?? name}</span>`
  : html`<a href=${agentPath(name)}>${children ?? name}</a>`);
