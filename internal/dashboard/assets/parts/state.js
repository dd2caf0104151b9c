// A state as icon, word and colour.
import { html, cx } from "../lib/dom.js";
import { Icon } from "./icon.js";

// kinds: icon, colour and, if it differs from the state, the word.
const kinds = {
  pending: ["clock", "quiet", "waiting"], dispatching: ["arrow", "busy"], working: ["play", "busy", "running"],
  cancelling: ["slash", "warn"], completed: ["check", "good"], failed: ["cross", "bad"], cancelled: ["slash", "quiet"],
  timeout: ["timer", "bad", "timed out"], parked: ["clock", "warn"],
  // faces of agents
  idle: ["ring", "good"], running: ["play", "busy"], "waiting for capacity": ["clock", "warn"], "waiting for account": ["clock", "warn"], stuck: ["warn", "bad", "stuck?"],
  paused: ["pause", "warn"], draining: ["pause", "warn"], down: ["cross", "bad"], closed: ["cross", "bad"], withheld: ["lock", "warn"],
  // accounts; closed is also an agent's state, and worse there
  open: ["check", "good"], trying: ["arrow", "busy", "being tried"], signed_out: ["lock", "bad", "signed out"],
};

export const wordOf = (state) => kinds[state]?.[2] ?? state;
export const toneOf = (state) => kinds[state]?.[1] ?? "quiet";

// State shows the state of a task or the face of an agent; text replaces the word.
export const State = ({ state, text, title, tone: given }) => {
  const [icon, own] = kinds[state] ?? ["ring", "quiet"];
  return html`<span class=${cx("state", `tone-${given ?? own}`)} title=${title}><${Icon} name=${icon} />${text ?? wordOf(state)}</span>`;
};
