// Daily budgets, with what is spent as bars.
import { html, cx } from "../lib/dom.js";
import { money } from "../lib/money.js";
import { ahead, useNow } from "../lib/time.js";
import { Bars } from "./bars.js";
import { Card } from "./card.js";
import { useLoad } from "./load.js";
import { State } from "./state.js";

const nearlyFull = 90; // percent

// Budgets is the card of the budgets, used up ones first.
export const Budgets = () => {
  const { data } = useLoad("/api/budgets", 15000);
  const list = [...(data?.budgets ?? [])].sort((a, b) => (a.state === "open") - (b.state === "open"));
  if (list.length === 0) return null;
  return html`<${Card} title="Budgets" note="what may be spent today (UTC)" name="budgets">
    <div class="accounts">${list.map((b) => html`<${Budget} key=${`${b.scope} ${b.name}`} budget=${b} />`)}</div>
  </${Card}>`;
};

const Budget = ({ budget: b }) => {
  const now = useNow();
  const name = b.name ? `${b.scope} ${b.name}` : "All tasks";
  return html`<section class="account" aria-label=${`Budget of ${name}`}>
    <div class="account-head"><h3 class="cut" title=${name}>${name}</h3><${State} state=${b.state === "open" ? "open" : "closed"} text=${b.state === "open" ? "open" : "used up"} tone=${b.state === "open" ? undefined : "warn"} title=${b.text} /></div>
    ${b.until && html`<p class="small-text">Its tasks wait; it opens ${ahead(b.until, now)}.</p>`}
    ${b.budget.usd > 0 && html`<${Figure} what="Money" used=${b.spent.usd} of=${b.budget.usd} text=${(n) => money(n) || "$0"} />`}
    ${b.budget.tokens > 0 && html`<${Figure} what="Tokens" used=${b.spent.tokens} of=${b.budget.tokens} text=${(n) => n.toLocaleString()} />`}
  </section>`;
};

const Figure = ({ what, used, of, text }) => {
  const percent = Math.round((used / of) * 100), full = percent >= nearlyFull;
  return html`<div class="account-limit"><p class="account-head"><span>${what}</span><span class=${cx("small-text", full ? "tone-warn" : "quiet")}>${text(used)} of ${text(of)}</span></p>
    <${Bars} used=${Math.min(percent, 100)} total=${100} full=${full} label=${`${what}: ${percent}% used`} /></div>`;
};
