// The closed gates: until when, what waits there, and the cure.
import { html } from "../lib/dom.js";
import { useLive } from "../lib/live.js";
import { useNow } from "../lib/time.js";
import { gateText } from "./account-words.js";
import { Card } from "./card.js";
import { Cure } from "./cure.js";
import { State } from "./state.js";

export const Gates = () => {
  const gates = useLive((b) => b.gates), now = useNow();
  if (gates.length === 0) return null;
  return html`<${Card} title="Closed now" note="first those that need a person" name="gates">
    <ul>${gates.map((g) => html`<li key=${`${g.kind}:${g.name}`} class="account"><span><${State} state=${g.state} tone=${g.state === "closed" && g.kind !== "agent" ? "warn" : undefined} /> ${gateText(g, now)}</span>
      <${Cure} text=${g.cure} /></li>`)}</ul>
  </${Card}>`;
};
