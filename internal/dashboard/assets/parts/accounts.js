// The accounts of agents: the limits of their providers as bars, until when they are
// closed, and what waits for them.
import { html, cx } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { useLive } from "../lib/live.js";
import { useMay } from "../lib/me.js";
import { ahead, clock, useNow } from "../lib/time.js";
import { waitsText, whyText } from "./account-words.js";
import { AgentLink } from "./agentlink.js";
import { Bars } from "./bars.js";
import { Card } from "./card.js";
import { openDialog } from "./dialog.js";
import { State } from "./state.js";
import { toast } from "./toast.js";

const nearlyFull = 90; // percent

// worth selects the accounts that are not open or have a known limit.
const worth = (a) => a.state !== "open" || a.windows?.length > 0;
const shutFirst = (a, b) => (a.state === "open") - (b.state === "open") || (a.name < b.name ? -1 : 1);

// Accounts is the card of the accounts worth showing: at most most, with a link to the
// others.
export const Accounts = ({ most = Infinity, all = "" }) => {
  const accounts = useLive((b) => b.accounts);
  const list = [...accounts.values()].filter(worth).sort(shutFirst);
  if (list.length === 0) return null;
  return html`<${Card} title="Accounts" note="the limits of the providers" name="accounts">
    <div class="accounts">${list.slice(0, most).map((a) => html`<${Account} key=${a.name} account=${a} />`)}</div>
    ${list.length > most && html`<p class="card-body"><a href=${all}>All ${list.length}</a></p>`}
  </${Card}>`;
};

const Account = ({ account: a }) => {
  const now = useNow();
  const about = [a.kind, a.login].filter(Boolean).join(" · ");
  return html`<section class="account" aria-label=${`Account ${a.name}`}>
    <div class="account-head"><h3 class="cut" title=${a.name}>${a.name}</h3><${State} state=${a.state} tone=${a.state === "closed" ? "warn" : undefined} title=${a.text} /></div>
    <p class="quiet small-text" dir="auto">${about}${a.agents.length > 0 && html`${about && " · "}${a.agents.map((name, i) => html`${i > 0 && ", "}<${AgentLink} name=${name} />`)}`}</p>
    ${a.state !== "open" && html`<p class="small-text" dir="auto">${whyText(a, now)}</p>`}
    ${waitsText(a) && html`<p class="small-text">${waitsText(a)}</p>`}
    ${(a.windows ?? []).map((w) => html`<${Limit} key=${w.name} limit=${w} now=${now} />`)}
    <${AccountButtons} account=${a} />
  </section>`;
};

const Limit = ({ limit: w, now }) => {
  const used = Math.round(w.used_percent), full = used >= nearlyFull;
  const resets = w.resets_at && (Date.parse(w.resets_at) > now ? `resets ${ahead(w.resets_at, now)}` : `has reset at ${clock(w.resets_at, now)}`);
  return html`<div class="account-limit"><p class="account-head"><span class="cut">${w.name}</span><span class=${cx("small-text", full ? "tone-warn" : "quiet")}>${[`${used}%`, resets].filter(Boolean).join(" · ")}</span></p>
    <${Bars} used=${Math.min(used, 100)} total=${100} full=${full} label=${`${w.name}: ${used}% used`} /></div>`;
};

// AccountButtons open an account and close it.
export const AccountButtons = ({ account: a }) => {
  const may = useMay("admin");
  const off = { disabled: !may.ok, title: may.why || undefined };
  return html`<p class="buttons">
    ${a.state !== "open" && html`<button type="button" class="small" ...${off} aria-label=${`Open account ${a.name}`} onClick=${() => openAccount(a.name)}>Open account</button>`}
    <button type="button" class="small" ...${off} aria-label=${`Close account… ${a.name}`} onClick=${() => closeAccount(a.name)}>Close account…</button></p>`;
};

export const openAccount = async (name) => {
  try {
    await post(`/api/accounts/${encodeURIComponent(name)}/open`);
    toast(`Account ${name} is open.`);
  } catch (error) {
    toast(`Account ${name} is not opened: ${error.message}.`, "bad");
  }
};

const closeAccount = async (name) => {
  const { CloseAccount } = await import("./account-close.js");
  openDialog((close) => html`<${CloseAccount} name=${name} onClose=${close} />`);
};
