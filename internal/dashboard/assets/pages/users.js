// The people who can log in, with their rights. For admins.
import { html, useState } from "../lib/dom.js";
import { del, put, query as queryOf } from "../lib/api.js";
import { useMay, useMe } from "../lib/me.js";
import { go } from "../lib/router.js";
import { clock, full } from "../lib/time.js";
import { AdminsOnly } from "../parts/admins.js";
import { confirm } from "../parts/confirm.js";
import { Dialog, openDialog } from "../parts/dialog.js";
import { Empty } from "../parts/empty.js";
import { ErrorBox } from "../parts/errorbox.js";
import { Field } from "../parts/fields.js";
import { Icon } from "../parts/icon.js";
import { Listing, sorted } from "../parts/listing.js";
import { useAction, useLoad } from "../parts/load.js";
import { Menu } from "../parts/menu.js";
import { toast } from "../parts/toast.js";

const path = (id) => `/api/users/${encodeURIComponent(id)}`;

export default ({ query }) => html`<${AdminsOnly} title="Users" command=${(me) => (me.kind === "user" ? `signalbox users set ${me.id} --role admin` : "signalbox users")}><${List} sort=${query.get("sort") ?? "id"} /></${AdminsOnly}>`;

const List = ({ sort }) => {
  const may = useMay("admin");
  const { data, error, again } = useLoad("/api/users", 15_000);
  const columns = columnsOf(again), users = data?.users ?? [];
  return html`
    <div class="page-head"><h1>Users</h1>
      <button type="button" class="primary" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => edit(null, again)}>New user</button></div>
    <${ErrorBox} error=${error} retry=${again} />
    ${data && users.length === 0 && html`<${Empty} title="No users yet" text="The director's own token may do everything. The first user must be an admin:" command="signalbox users set NAME --role admin" />`}
    ${users.length > 0 && html`<${Listing} label="Users" name="users" columns=${columns} items=${sorted(users, columns, sort)} keyOf=${(u) => u.id} sort=${sort}
      onSort=${(by) => go(`/ui/users${queryOf({ sort: by === "id" ? "" : by })}`, { replace: true })} rowOf=${(u) => ({ "aria-label": `User ${u.id}` })} />`}`;
};

const columnsOf = (again) => [
  { name: "id", label: "User", by: (u) => u.id, cell: (u) => html`<h2 class="cut">${u.id}</h2>${u.email && html`<p class="cut quiet small-text">${u.email}</p>`}` },
  { name: "role", label: "Role", by: (u) => u.role, cell: (u) => u.role },
  { name: "agents", label: "Agents", cell: (u) => u.agents?.join(", ") || html`<span class="quiet">all</span>` },
  { name: "created", label: "Created", by: (u) => u.created_at, cell: (u) => html`<span title=${full(u.created_at)}>${clock(u.created_at)}</span>` },
  { name: "state", label: "State", by: (u) => (u.disabled ? 1 : 0), cell: (u) => (u.disabled ? html`<span class="state tone-quiet"><${Icon} name="pause" />disabled</span>` : html`<span class="state tone-good"><${Icon} name="check" />active</span>`) },
  { name: "do", label: html`<span class="unseen">Actions</span>`, cell: (u) => html`<${Actions} user=${u} again=${again} />` },
];

const Actions = ({ user: u, again }) => {
  const may = useMay("admin"), me = useMe(), self = me?.kind === "user" && me.id === u.id;
  const change = async (body, said) => {
    try { await put(path(u.id), body); toast(said); again(); } catch (error) { toast(`Not changed: ${error.message}${error.hint ? `. ${error.hint}` : ""}.`, "bad"); }
  };
  return html`<${Menu} label=${`Actions for ${u.id}`} items=${[
    { text: "Edit…", act: () => edit(u, again), off: may.why },
    u.disabled ? { text: "Enable", act: () => change({ disabled: false }, `${u.id} may log in again.`), off: may.why }
      : { text: "Disable…", off: may.why || (self && "That would lock you out."), act: () => confirm({
        title: `Disable ${u.id}`, action: "Disable", consequence: ["Its logins end at once and its tokens are refused. Its tasks go on. It can be enabled again."],
        onConfirm: async () => { await put(path(u.id), { disabled: true }); toast(`${u.id} is disabled.`); again(); } }) },
    { text: "Remove…", danger: true, off: may.why || (self && "That would lock you out."), act: () => confirm({
      title: `Remove ${u.id}`, action: "Remove", typed: u.id, consequence: ["Its logins and tokens are gone at once. Its tasks stay, under its name."],
      onConfirm: async () => { await del(path(u.id)); toast(`${u.id} is removed.`); again(); } }) },
  ]} />`;
};

const edit = (user, again) => openDialog((close) => html`<${Edit} user=${user} again=${again} onClose=${close} />`);

const Edit = ({ user, again, onClose }) => {
  const first = { id: user?.id ?? "", email: user?.email ?? "", role: user?.role ?? "user", agents: user?.agents?.join(", ") ?? "", password: "" };
  const [form, setForm] = useState(first);
  const set = (name) => ({ target: { value } }) => setForm((was) => ({ ...was, [name]: value }));
  const [run, busy, error] = useAction(async () => {
    const body = { role: form.role, agents: form.agents.split(/[\s,]+/).filter(Boolean) };
    if (form.email !== first.email || !user) body.email = form.email.trim();
    if (form.password) body.password = form.password;
    await put(path(form.id.trim()), body);
    toast(user ? `${form.id} is changed.` : `${form.id} may log in${form.password ? "" : " once there is a password"}.`);
    onClose();
    again();
  });
  const foot = html`<button type="button" onClick=${onClose}>Discard</button><button type="submit" class="primary" disabled=${busy || !form.id.trim()}>${busy ? "Saving…" : user ? "Save" : "Create user"}</button>`;
  const text = { autocomplete: "off", autocapitalize: "none", spellcheck: false };
  return html`<${Dialog} title=${user ? `Edit ${user.id}` : "New user"} wide onClose=${onClose} onSubmit=${run} foot=${foot}>
    <div class="fields">
      ${!user && html`<${Field} label="Name to log in with" hint="letters, digits, dots, underscores, hyphens" error=${error} name="id">${(p) => html`<input ...${p} ...${text} data-first="" maxlength="64" value=${form.id} onInput=${set("id")} />`}</${Field}>`}
      <${Field} label="E-mail address" hint="for the audit log" error=${error} name="email">${(p) => html`<input ...${p} ...${text} type="email" maxlength="254" value=${form.email} onInput=${set("email")} />`}</${Field}>
      <${Field} label="Role" hint="an admin may do everything" error=${error} name="role">${(p) => html`<select ...${p} value=${form.role} onChange=${set("role")}><option value="user">user</option><option value="admin">admin</option></select>`}</${Field}>
    </div>
    <div class="fields">
      <${Field} label="Only these agents" hint="separated by commas; empty: all" error=${error} name="agents">${(p) => html`<input ...${p} ...${text} value=${form.agents} onInput=${set("agents")} />`}</${Field}>
      <${Field} label=${user ? "New password" : "Password"} hint=${user ? "12 bytes or more; empty: unchanged. All its logins end." : "12 bytes or more"} error=${error} name="password">${(p) => html`<input ...${p} type="password" autocomplete="new-password" maxlength="1024" value=${form.password} onInput=${set("password")} />`}</${Field}>
    </div>
    ${error && !error.field && html`<${ErrorBox} error=${error} />`}
  </${Dialog}>`;
};
