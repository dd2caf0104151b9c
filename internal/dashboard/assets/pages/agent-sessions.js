// The conversations of an agent.
import { html, useState } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { useMay } from "../lib/me.js";
import { age, full } from "../lib/time.js";
import { conversationPath } from "../lib/router.js";
import { Card } from "../parts/card.js";
import { ErrorBox } from "../parts/errorbox.js";
import { useLoad } from "../parts/load.js";
import { toast } from "../parts/toast.js";

export const Sessions = ({ name }) => {
  const [all, setAll] = useState(false);
  const { data, error, again } = useLoad(`/api/sessions?agent=${encodeURIComponent(name)}&state=${all ? "all" : "active"}&limit=20`, 15_000);
  const may = useMay("submit");
  const change = async (session, verb) => {
    try {
      await post(`/api/sessions/${encodeURIComponent(session.session_id)}/${verb}`);
      again();
    } catch (cause) {
      toast(`Not done: ${cause.message}.`, "bad");
    }
  };
  return html`
    <${Card} title="Conversations" side=${html`<label class="check"><input type="checkbox" checked=${all} onChange=${(e) => setAll(e.target.checked)} /> with archived ones</label>`}>
      <${ErrorBox} error=${error} retry=${again} />
      ${data?.sessions.length === 0 && html`<p class="card-body quiet">None.</p>`}
      <p class="card-body"><a href=${conversationPath(name, "new")}>New conversation</a></p>
      <ul class="list">${data?.sessions.map((s) => html`
        <li key=${s.session_id} class="run-row">
          <p><a href=${conversationPath(name, s.session_id)} class="cut" title=${s.session_id}>${s.title || s.session_id}</a></p>
          <p class="quiet"><span title=${full(s.last_used_at)}>${s.turns} ${s.turns === 1 ? "turn" : "turns"}, ${age(s.last_used_at)} ago</span>${s.current ? " · continued by chats" : ""}${s.state !== "active" ? ` · ${s.state}` : ""}
            ${s.state === "active" && html` <button type="button" class="plain" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => change(s, "archive")}>Archive</button>`}
            ${s.state === "archived" && html` <button type="button" class="plain" disabled=${!may.ok} title=${may.why || undefined} onClick=${() => change(s, "restore")}>Restore</button>`}</p>
        </li>`)}</ul>
      ${data?.next && html`<p class="card-body quiet">and older ones: signalbox sessions</p>`}
    </${Card}>`;
};
