// The tokens of programs, agents and users: their rights, and their last use. For admins.
import { html, useState } from "../lib/dom.js";
import { del, post, query as queryOf } from "../lib/api.js";
import { useMay, useMe } from "../lib/me.js";
import { go } from "../lib/router.js";
import { age, clock, full, serverNow } from "../lib/time.js";
import { AdminsOnly } from "../parts/admins.js";
import { confirm } from "../parts/confirm.js";
import { Copy } from "../parts/copy.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Field } from "../parts/fields.js";
import { Listing, sorted } from "../parts/listing.js";
import { useAction, useLoad } from "../parts/load.js";
import { Menu } from "../parts/menu.js";
import { toast } from "../parts/toast.js";

export default ({ query }) => html`<${AdminsOnly} title="Tokens" command=${() => "signalbox tokens"}><${List} query=${query} /></${AdminsOnly}>`;

const over = (t) => (t.revoked_at ? "revoked" : t.expires_at && Date.parse(t.expires_at) <= serverNow() ? "expired" : "");

const List = ({ query }) => {
  const sort = query.get("sort") ?? "name", all = query.get("all") === "true", may = useMay("admin");
  const set = (change) => go(`/ui/tokens${queryOf({ sort: sort === "name" ? "" : sort, all: all ? "true" : "", ...change })}`, { replace: true });
  const { data, error, again } = useLoad("/api/tokens", 15_000);
  const columns = columnsOf(again), tokens = (data?.tokens ?? []).filter((t) => all || !over(t));
  return html`
    <div class="page-head"><h1>Tokens</h1>
      <label class="check" for="tokens-shown">Show <select id="tokens-shown" value=${all ? "true" : ""} onChange=${(e) => set({ all: e.target.value })}><option value="">those in force</option><option value="true">all</option></select></label>
      <button type="button" class="primary" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => openDialog((close) => html`<${Create} again=${again} onClose=${close} />`)}>New token</button></div>
    <${ErrorBox} error=${error} retry=${again} />
    ${data && tokens.length === 0 && html`<${Empty} title=${all ? "No tokens yet" : "No valid tokens"} text="Programs, scripts and agents on other hosts authenticate with tokens." command="signalbox tokens create ci --scope submit --scope read --out ci.token" />`}
    ${tokens.length > 0 && html`<${Listing} label="Tokens" name="tokens" columns=${columns} items=${sorted(tokens, columns, sort)} keyOf=${(t) => t.id} sort=${sort}
      onSort=${(by) => set({ sort: by === "name" ? "" : by })} rowOf=${(t) => ({ class: over(t) && "is-off", "aria-label": `Token ${t.name}` })} />`}`;
};

const columnsOf = (again) => [
  { name: "name", label: "Token", by: (t) => t.name, cell: (t) => html`<h2 class="cut">${t.name}</h2><p class="cut quiet small-text">${t.id}</p>` },
  { name: "for", label: "Speaks for", by: (t) => `${t.kind} ${t.principal}`, cell: (t) => `${t.kind} ${t.principal}` },
  { name: "scopes", label: "May", cell: (t) => html`<p>${t.scopes.join(", ")}</p>${t.agents?.length > 0 && html`<p class="quiet small-text">only ${t.agents.join(", ")}</p>`}` },
  { name: "used", label: "Last used", by: (t) => t.last_used_at, cell: (t) => (t.last_used_at ? html`<span title=${full(t.last_used_at)}>${age(t.last_used_at)} ago</span>` : html`<span class="quiet" title="since the director was started">not yet</span>`) },
  { name: "created", label: "Created", by: (t) => t.created_at, cell: (t) => html`<span title=${`${full(t.created_at)}${t.created_by ? ` by ${t.created_by}` : ""}`}>${clock(t.created_at)}</span>` },
  { name: "ends", label: "Ends", by: (t) => t.revoked_at ?? t.expires_at, cell: (t) => html`<span class=${over(t) && "tone-bad"} title=${full(t.revoked_at ?? t.expires_at)}>${over(t) || (t.expires_at ? clock(t.expires_at) : "never")}</span>` },
  { name: "do", label: html`<span class="unseen">Actions</span>`, cell: (t) => html`<${Actions} token=${t} again=${again} />` },
];

const Actions = ({ token: t, again }) => {
  const may = useMay("admin"), me = useMe();
  return html`<${Menu} label=${`Actions for ${t.name}`} items=${[{
    text: "Revoke…", danger: true, off: may.why || (over(t) && `It is ${over(t)}.`), act: () => confirm({
      title: `Revoke ${t.name}`, action: "Revoke", consequence: [`Clients that use it lose access at once${t.id === me?.token_id ? ": you are using it" : ""}. This cannot be undone.`],
      onConfirm: async () => { await del(`/api/tokens/${encodeURIComponent(t.id)}`); toast(`${t.name} is revoked.`); again(); } }),
  }]} />`;
};

const scopes = ["read", "submit", "cancel", "release", "tool", "schedule", "terminal", "admin"];
const lives = [["2592000", "in 30 days"], ["7776000", "in 90 days"], ["31536000", "in a year"], ["0", "never"]];

const Create = ({ again, onClose }) => {
  const [form, setForm] = useState({ name: "", kind: "service", whom: "", life: lives[0][0], agents: "" }), [chosen, setChosen] = useState(["submit", "read"]), [made, setMade] = useState(null);
  const set = (name) => ({ target: { value } }) => setForm((was) => ({ ...was, [name]: value }));
  const [run, busy, error] = useAction(async () => {
    const body = { name: form.name.trim(), expires_in_seconds: Number(form.life), agents: form.agents.split(/[\s,]+/).filter(Boolean) };
    if (form.kind === "service") body.scopes = chosen; else body[form.kind] = form.whom.trim();
    setMade(await post("/api/tokens", body));
    again();
  });
  const text = { autocomplete: "off", autocapitalize: "none", spellcheck: false };
  if (made) {
    return html`<${Dialog} title=${`Token ${made.name}`} wide onClose=${onClose} foot=${html`<button type="button" class="primary" data-first="" onClick=${onClose}>I have kept it</button>`}>
      <p>This is shown only once. Keep it where only its user can read it, and pass it as <code>SIGNALBOX_TOKEN</code> or in a file with <code>--token-file</code>.</p>
      <p class="secret">${made.secret}</p><p><${Copy} text=${made.secret} label="Copy the secret" /></p>
    </${Dialog}>`;
  }
  const toggle = (scope) => setChosen((was) => (was.includes(scope) ? was.filter((s) => s !== scope) : [...was, scope]));
  const foot = html`<button type="button" onClick=${onClose}>Discard</button><button type="submit" class="primary" disabled=${busy || !form.name.trim()}>${busy ? "Working…" : "Create token"}</button>`;
  return html`<${Dialog} title="New token" wide onClose=${onClose} onSubmit=${run} foot=${foot}>
    <div class="fields">
      <${Field} label="Name" error=${error} name="name">${(p) => html`<input ...${p} ...${text} data-first="" maxlength="64" value=${form.name} onInput=${set("name")} />`}</${Field}>
      <${Field} label="It stands for" error=${error} name="kind">${(p) => html`<select ...${p} value=${form.kind} onChange=${set("kind")}><option value="service">a program</option><option value="agent">an agent</option><option value="user">a user</option></select>`}</${Field}>
      ${form.kind !== "service" && html`<${Field} label=${form.kind === "agent" ? "Name of the agent" : "Name of the user"} hint="its usual rights come with it" error=${error} name=${form.kind}>${(p) => html`<input ...${p} ...${text} maxlength="64" value=${form.whom} onInput=${set("whom")} />`}</${Field}>`}
      <${Field} label="It ends" error=${error} name="expires_in_seconds">${(p) => html`<select ...${p} value=${form.life} onChange=${set("life")}>${lives.map(([value, words]) => html`<option key=${value} value=${value}>${words}</option>`)}</select>`}</${Field}>
    </div>
    ${form.kind === "service" && html`<fieldset class="scopes"><legend>What it may do</legend>${scopes.map((scope) => html`<label class="check" key=${scope}><input type="checkbox" checked=${chosen.includes(scope)} onChange=${() => toggle(scope)} />${scope}</label>`)}</fieldset>`}
    <${Field} label="Only these agents" hint="separated by commas; empty: all" error=${error} name="agents">${(p) => html`<input ...${p} ...${text} value=${form.agents} onInput=${set("agents")} />`}</${Field}>
    ${error && !["name", "kind", "agents", form.kind].includes(error.field) && html`<${ErrorBox} error=${error} />`}
  </${Dialog}>`;
};
