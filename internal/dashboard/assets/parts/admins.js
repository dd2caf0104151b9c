// A page for admins: others see who they are, and how to get access.
import { html } from "../lib/dom.js";
import { useMe } from "../lib/me.js";
import { Empty } from "./empty.js";

// AdminsOnly: command(me) is the command that an admin can run.
export const AdminsOnly = ({ title, command, children }) => {
  const me = useMe();
  if (!me || me.scopes.includes("admin")) return me && children;
  return html`<div class="page-head"><h1>${title}</h1></div>
    <${Empty} title="This is for admins" text=${`You are ${me.email || me.id || "someone without a name"}, and have the rights ${me.scopes.join(", ") || "none"}. An admin can show it to you, or give you the role:`} command=${command(me)} />`;
};
